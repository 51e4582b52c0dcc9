// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/reducing.h"
#include "runtime/collectives/ring.h"
#include "runtime/collectives/timetable.h"

namespace railhead::collectives {
namespace {

class Reduce final : public RingSchedule {
 public:
  Reduce(int rank, const Operation& all)
      : RingSchedule(rank, all.ranks),
        first_(PreviousRank(rank, all.ranks) == all.root),
        last_(rank == all.root),
        train_(all.count * reduce::SizeOf(all.reduction.type)),
        send_(all.send),
        receive_(all.receive),
        reduction_(last_ ? all.reduction : Partial(all.reduction)),
        passage_(first_ || last_ ? 0 : train_.segment_size()) {}

  size_t sends() const override { return last_ ? 0 : train_.size(); }
  size_t receives() const override { return first_ ? 0 : train_.size(); }

 private:
  Outgoing SendNext(size_t n) const override {
    const Range range = train_.At(n);
    if (first_) return {absl::MakeConstSpan(send_ + range.begin, range.size)};
    return {absl::MakeConstSpan(passage_.At(n), range.size), n};
  }

  Incoming ReceivePrevious(size_t n) const override {
    const Range range = train_.At(n);
    Incoming incoming;
    incoming.buffer.data = last_ ? receive_ + range.begin : passage_.At(n);
    incoming.buffer.size = range.size;
    incoming.buffer.operand = send_ + range.begin;
    incoming.buffer.reduction = &reduction_;
    if (!last_ && n >= kAhead) incoming.after = n - kAhead;
    return incoming;
  }

  const bool first_;
  const bool last_;
  const Train train_;
  const std::byte* const send_;
  std::byte* const receive_;
  const reduce::Reduction reduction_;
  const Passage passage_;
};

}  // namespace

absl::Status RingReduce(Messenger& messenger, int rank, const Operation& operation) {
  if (ReducedAlone(operation)) return absl::OkStatus();
  return Run(messenger, Reduce(rank, operation));
}

}  // namespace railhead::collectives
