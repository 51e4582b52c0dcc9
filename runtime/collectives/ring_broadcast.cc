// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/ring.h"
#include "runtime/collectives/timetable.h"

namespace railhead::collectives {
namespace {

class Broadcast final : public RingSchedule {
 public:
  Broadcast(int rank, const Operation& all)
      : RingSchedule(rank, all.ranks),
        first_(rank == all.root),
        last_(NextRank(rank, all.ranks) == all.root),
        train_(all.count),
        data_(all.receive) {}

  size_t sends() const override { return last_ ? 0 : train_.size(); }
  size_t receives() const override { return first_ ? 0 : train_.size(); }

 private:
  Outgoing SendNext(size_t n) const override {
    const Range range = train_.At(n);
    return {absl::MakeConstSpan(data_ + range.begin, range.size), first_ ? kNothing : n};
  }

  Incoming ReceivePrevious(size_t n) const override {
    const Range range = train_.At(n);
    Incoming incoming;
    incoming.buffer.data = data_ + range.begin;
    incoming.buffer.size = range.size;
    return incoming;
  }

  const bool first_;
  const bool last_;
  const Train train_;
  std::byte* const data_;
};

}  // namespace

absl::Status RingBroadcast(Messenger& messenger, int rank, const Operation& operation) {
  CopyAtRoot(rank, operation);
  return Run(messenger, Broadcast(rank, operation));
}

}  // namespace railhead::collectives
