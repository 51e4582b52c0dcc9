// SPDX-License-Identifier: Apache-2.0
//
// Rendezvous server: rank 0 until all ranks have arrived.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_RENDEZVOUS_SERVER_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_RENDEZVOUS_SERVER_H_

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
#include "runtime/bootstrap/handshake_server.h"

namespace railhead::bootstrap {

// Accepts ranks until all have come. A rank that disconnects may connect again.
class RendezvousServer {
 public:
  // `same_on_all_ranks` completes "check that ...", for ranks that do not come.
  RendezvousServer(ListeningSocket listener, int world_size, HostHandshake::Identity self,
                   Secret secret, const Logger& log, std::string same_on_all_ranks)
      : world_size_(static_cast<uint32_t>(world_size)),
        log_(log),
        self_(DescribeRank(self.rank, self.name)),
        same_on_all_ranks_(std::move(same_on_all_ranks)),
        shares_socket_(listener.shared != nullptr),
        has_secret_(secret.proves()),
        handshakes_(
            std::move(listener), std::move(self), std::move(secret),
            static_cast<size_t>(world_size), [this](const Hello& hello) { return Object(hello); },
            log) {}
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  // Returns when all have arrived. Else DeadlineExceeded names the missing ranks; or the error of
  // `hopeless`; or that a rank cannot prove that it belongs to the job. Arrived ranks are notified
  // of that at once, but in a job with a secret it does not end the wait, since anyone can claim
  // it. FailedPrecondition, too, if another process of the job has the rank of this one: the ranks
  // may be those of two jobs.
  absl::Status Gather(absl::Time deadline, const Halt& hopeless);

  // Arrived ranks; also valid after a failed Gather.
  std::map<uint32_t, HandshakeServer::Guest> TakeGuests() { return std::move(guests_); }
  uint64_t rejected() const { return handshakes_.rejected(); }
  // Number of ranks rejected with a recorded reason.
  size_t told() const { return handshakes_.turned_away().size(); }

 private:
  std::optional<Refusal> Object(const Hello& hello);
  bool Complete() const { return guests_.size() + 1 == world_size_; }
  void PollOnce(absl::Time deadline);
  // Notifies arrived ranks of rejected ones.
  void Notify();
  absl::Status Hopeless() const;
  void TellLateComers(const absl::Status& why);
  std::string Missing() const;
  absl::Status Late(absl::Duration waited) const;

  uint32_t world_size_;
  Logger log_;
  std::string self_;
  std::string same_on_all_ranks_;
  std::string rival_;  // why another process with this rank ends the wait; "" without one
  bool shares_socket_;
  bool has_secret_;
  HandshakeServer handshakes_;
  std::map<uint32_t, HandshakeServer::Guest> guests_;
  // by arrived rank: the rejected ranks it was notified of
  std::map<uint32_t, std::set<uint32_t>> notified_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_RENDEZVOUS_SERVER_H_
