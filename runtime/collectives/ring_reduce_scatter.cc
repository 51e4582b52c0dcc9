// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/ring_reduce_scatter.h"

#include "runtime/collectives/reducing.h"
#include "runtime/collectives/ring.h"
#include "runtime/collectives/timetable.h"

namespace railhead::collectives {
namespace {

class ReduceScatter final : public RingSchedule {
 public:
  ReduceScatter(int rank, int world_size, const reduce::Reduction& reduction, const std::byte* send,
                std::byte* receive, const Parts& parts)
      : RingSchedule(rank, world_size),
        element_(reduce::SizeOf(reduction.type)),
        last_step_(static_cast<size_t>(world_size) - 2),
        own_(parts[static_cast<size_t>(rank)].begin),
        // The part of the rank before goes first: it has the longest way.
        timetable_({.parts = parts,
                    .first = static_cast<size_t>(PreviousRank(rank, world_size)),
                    .steps = static_cast<size_t>(world_size) - 1,
                    .element = element_,
                    .largest_segment = kLargestReduceScatterSegment}),
        send_(send),
        receive_(receive),
        whole_(reduction),
        partial_(Partial(reduction)),
        passage_(last_step_ == 0 ? 0 : timetable_.segment_size() * element_) {}

  size_t sends() const override { return timetable_.total(); }
  size_t receives() const override { return timetable_.total(); }

 private:
  Outgoing SendNext(size_t n) const override {
    const Range range = timetable_.Sent(n);
    const size_t size = range.size * element_;
    if (timetable_.Step(n) == 0) {
      return {absl::MakeConstSpan(send_ + range.begin * element_, size)};
    }
    const size_t needed = n - timetable_.segments();
    return {absl::MakeConstSpan(passage_.At(needed), size), needed};
  }

  Incoming ReceivePrevious(size_t n) const override {
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
    // The place's previous message is sent one step after it arrives.
    const size_t way = kAhead - timetable_.segments();
    if (n >= kAhead) incoming.after = n - way;
    return incoming;
  }

  static_assert(kMostSegments < kAhead);

  const size_t element_;
  const size_t last_step_;
  const size_t own_;  // the first value that this rank gets
  const Timetable timetable_;
  const std::byte* const send_;
  std::byte* const receive_;
  const reduce::Reduction whole_;
  const reduce::Reduction partial_;
  const Passage passage_;
};

}  // namespace

absl::Status RingReduceScatter(Messenger& messenger, int rank, int world_size,
                               const reduce::Reduction& reduction, const std::byte* send,
                               std::byte* receive, const Parts& parts) {
  const std::byte* const first = send + parts[0].begin * reduce::SizeOf(reduction.type);
  if (ReducedAlone(world_size, reduction, first, receive, parts.largest())) {
    return absl::OkStatus();
  }
  return Run(messenger, ReduceScatter(rank, world_size, reduction, send, receive, parts));
}

}  // namespace railhead::collectives
