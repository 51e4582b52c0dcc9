// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/ring_reduce.h"

#include "runtime/collectives/reducing.h"
#include "runtime/collectives/ring.h"
#include "runtime/collectives/timetable.h"

namespace railhead::collectives {
namespace {

class Reduce final : public RingSchedule {
 public:
  Reduce(int rank, int world_size, int root, const reduce::Reduction& reduction,
         const std::byte* send, std::byte* receive, size_t bytes)
      : RingSchedule(rank, world_size),
        first_(PreviousRank(rank, world_size) == root),
        last_(rank == root),
        train_(bytes),
        send_(send),
        receive_(receive),
        reduction_(last_ ? reduction : Partial(reduction)),
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

absl::Status RingReduce(Messenger& messenger, int rank, int world_size, int root,
                        const reduce::Reduction& reduction, const std::byte* send,
                        std::byte* receive, size_t count) {
  if (ReducedAlone(world_size, reduction, send, receive, count)) return absl::OkStatus();
  return Run(messenger, Reduce(rank, world_size, root, reduction, send, receive,
                               count * reduce::SizeOf(reduction.type)));
}

}  // namespace railhead::collectives
