// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/ring_reduce.h"

#include "runtime/collectives/ring.h"
#include "runtime/collectives/timetable.h"

namespace railhead::collectives {
namespace {

class Reduce final : public RingSchedule {
 public:
  // `receive` is null on all ranks but the root.
  Reduce(bool first, const reduce::Reduction& reduction, const std::byte* send, std::byte* receive,
         size_t bytes)
      : first_(first),
        last_(receive != nullptr),
        train_(bytes),
        send_(send),
        receive_(receive),
        reduction_(reduction),
        passage_(first_ || last_ ? 0 : train_.segment_size()) {
    // A mean is a sum until the last rank has added its values.
    if (!last_) reduction_.divisor = 1;
  }

  size_t sends() const override { return last_ ? 0 : train_.size(); }
  size_t receives() const override { return first_ ? 0 : train_.size(); }

  Outgoing Send(size_t n) const override {
    const Range range = train_.At(n);
    if (first_) return {absl::MakeConstSpan(send_ + range.begin, range.size)};
    return {absl::MakeConstSpan(passage_.At(n), range.size), n};
  }

  Incoming Receive(size_t n) const override {
    const Range range = train_.At(n);
    Incoming incoming;
    incoming.buffer.data = last_ ? receive_ + range.begin : passage_.At(n);
    incoming.buffer.size = range.size;
    incoming.buffer.operand = send_ + range.begin;
    incoming.buffer.reduction = &reduction_;
    if (!last_ && n >= kRingAhead) incoming.after = n - kRingAhead;
    return incoming;
  }

 private:
  const bool first_;
  const bool last_;
  const Train train_;
  const std::byte* const send_;
  std::byte* const receive_;
  reduce::Reduction reduction_;
  const Passage passage_;
};

}  // namespace

absl::Status RingReduce(Messenger& messenger, int rank, int world_size, int root,
                        const reduce::Reduction& reduction, const std::byte* send,
                        std::byte* receive, size_t count) {
  if (count == 0) return absl::OkStatus();
  if (world_size == 1) {
    reduce::Reduce(reduction, {send}, receive, count, reduce::Stores::kNormal);
    return absl::OkStatus();
  }
  const int previous = PreviousRank(rank, world_size);
  return RunRing(messenger, previous, NextRank(rank, world_size),
                 Reduce(previous == root, reduction, send, rank == root ? receive : nullptr,
                        count * reduce::SizeOf(reduction.type)));
}

}  // namespace railhead::collectives
