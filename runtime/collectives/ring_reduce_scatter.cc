// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/ring_reduce_scatter.h"

#include "runtime/collectives/ring.h"
#include "runtime/collectives/timetable.h"

namespace railhead::collectives {
namespace {

constexpr size_t kLargestSegment = size_t{256} << 10U;

class ReduceScatter final : public RingSchedule {
 public:
  ReduceScatter(int rank, int world_size, const reduce::Reduction& reduction, const std::byte* send,
                std::byte* receive, size_t count)
      : element_(reduce::SizeOf(reduction.type)),
        last_step_(static_cast<size_t>(world_size) - 2),
        own_(static_cast<size_t>(rank) * count),
        // The part of the rank before goes first: it has the longest way.
        timetable_({.ranks = static_cast<size_t>(world_size),
                    .first = static_cast<size_t>(PreviousRank(rank, world_size)),
                    .steps = static_cast<size_t>(world_size) - 1,
                    .count = static_cast<size_t>(world_size) * count,
                    .element = element_,
                    .largest_segment = kLargestSegment}),
        send_(send),
        receive_(receive),
        whole_(reduction),
        partial_(reduction),
        passage_(last_step_ == 0 ? 0 : timetable_.segment_size() * element_) {
    // A mean is a sum until the last rank has added its values.
    partial_.divisor = 1;
  }

  size_t sends() const override { return timetable_.total(); }
  size_t receives() const override { return timetable_.total(); }

  Outgoing Send(size_t n) const override {
    const Range range = timetable_.Sent(n);
    const size_t size = range.size * element_;
    if (timetable_.Step(n) == 0) {
      return {absl::MakeConstSpan(send_ + range.begin * element_, size)};
    }
    const size_t needed = n - timetable_.segments();
    return {absl::MakeConstSpan(passage_.At(needed), size), needed};
  }

  Incoming Receive(size_t n) const override {
    const Range range = timetable_.Received(n);
    Incoming incoming;
    incoming.buffer.size = range.size * element_;
    incoming.buffer.operand = send_ + range.begin * element_;
    if (timetable_.Step(n) == last_step_) {
      incoming.buffer.data = receive_ + (range.begin - own_) * element_;
      incoming.buffer.reduction = &whole_;
      return incoming;
    }
    incoming.buffer.data = passage_.At(n);
    incoming.buffer.reduction = &partial_;
    // What came to this place before has left a step later.
    const size_t way = kRingAhead - timetable_.segments();
    if (n >= kRingAhead) incoming.after = n - way;
    return incoming;
  }

 private:
  static_assert(kMostSegments < kRingAhead);

  const size_t element_;
  const size_t last_step_;
  const size_t own_;  // the first value that this rank gets
  const Timetable timetable_;
  const std::byte* const send_;
  std::byte* const receive_;
  const reduce::Reduction whole_;
  reduce::Reduction partial_;
  const Passage passage_;
};

}  // namespace

absl::Status RingReduceScatter(Messenger& messenger, int rank, int world_size,
                               const reduce::Reduction& reduction, const std::byte* send,
                               std::byte* receive, size_t count) {
  if (count == 0) return absl::OkStatus();
  if (world_size == 1) {
    reduce::Reduce(reduction, {send}, receive, count, reduce::Stores::kNormal);
    return absl::OkStatus();
  }
  return RunRing(messenger, PreviousRank(rank, world_size), NextRank(rank, world_size),
                 ReduceScatter(rank, world_size, reduction, send, receive, count));
}

}  // namespace railhead::collectives
