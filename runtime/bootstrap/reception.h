// SPDX-License-Identifier: Apache-2.0
//
// Rank 0's door while the ranks gather.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_RECEPTION_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_RECEPTION_H_

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/hello.h"

namespace railhead::bootstrap {

// Takes connections until every rank has introduced itself. Everybody has a few seconds to do so,
// and nobody waits for anybody else: a silent or babbling stranger costs one slot for a while.
class Reception {
 public:
  Reception(net::Fd listener, int world_size, std::string job, Logger log)
      : listener_(std::move(listener)),
        job_(std::move(job)),
        log_(std::move(log)),
        names_(static_cast<size_t>(world_size)),
        present_(static_cast<size_t>(world_size)) {
    present_[0] = true;
  }

  // Returns when all are there. Otherwise DeadlineExceeded that names the missing ranks.
  absl::Status Gather(absl::Time deadline);

  // Those who arrived, also after a failed Gather.
  std::vector<Member> TakeMembers() { return std::move(members_); }
  std::vector<std::string> TakeNames() { return std::move(names_); }
  uint64_t rejected() const { return rejected_; }

 private:
  struct Visitor {
    net::Fd fd;
    FrameReader reader;
    absl::Time patience;
    std::string from;
  };

  bool Complete() const { return members_.size() + 1 == present_.size(); }
  void PollOnce(absl::Time deadline);
  void TakeVisitors();
  // Reads from one visitor. Returns whether it has ceased to be one: let in or turned away.
  bool Serve(Visitor& visitor);
  void Admit(Visitor& visitor, const Hello& hello);
  void Reject(const Visitor& visitor, absl::string_view why);
  void DropMembersThatLeft(const std::vector<int>& readable);
  std::string Missing() const;

  net::Fd listener_;
  std::string job_;
  Logger log_;
  std::vector<std::string> names_;
  std::vector<bool> present_;
  std::vector<Member> members_;
  std::list<Visitor> visitors_;
  uint64_t rejected_ = 0;
  std::string last_rejection_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_RECEPTION_H_
