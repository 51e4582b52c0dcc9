// SPDX-License-Identifier: Apache-2.0
//
// Rank 0 while the ranks gather.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_RECEPTION_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_RECEPTION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/halt.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/door.h"

namespace railhead::bootstrap {

// Holds the door open until every rank has come. A rank that leaves again may come again.
class Reception {
 public:
  Reception(net::Fd listener, int world_size, HostHandshake::Identity self, Secret secret,
            const Logger& log)
      : world_size_(static_cast<uint32_t>(world_size)),
        log_(log),
        has_secret_(secret.proves()),
        door_(
            std::move(listener), std::move(self), std::move(secret),
            static_cast<size_t>(world_size), [this](const Hello& hello) { return Object(hello); },
            log) {}
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  // Returns when all are there. Otherwise DeadlineExceeded that names the missing ranks, or what
  // `hopeless` says, or that a rank cannot prove that it belongs to the job. Of that those who have
  // come are told at once; but in a job with a secret it ends nothing, since anybody can say it.
  absl::Status Gather(absl::Time deadline, const Halt& hopeless);

  // Those who arrived, by rank; also after a failed Gather.
  std::map<uint32_t, Door::Guest> TakeGuests() { return std::move(guests_); }
  uint64_t rejected() const { return door_.rejected(); }
  // How many ranks were turned away with a reason, as far as that is kept.
  size_t told() const { return door_.turned_away().size(); }

 private:
  std::optional<Refusal> Object(const Hello& hello) const;
  bool Complete() const { return guests_.size() + 1 == world_size_; }
  void PollOnce(absl::Time deadline);
  // Tells those who have come of those who are turned away.
  void Notify();
  absl::Status Hopeless() const;
  void TellLateComers(const absl::Status& why);
  std::string Missing() const;
  absl::Status Late(absl::Duration waited) const;

  uint32_t world_size_;
  Logger log_;
  bool has_secret_;
  Door door_;
  std::map<uint32_t, Door::Guest> guests_;
  std::map<uint32_t, std::set<uint32_t>> notified_;  // by guest: of which ranks
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_RECEPTION_H_
