// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/reducing.h"
#include "runtime/collectives/ring.h"
#include "runtime/collectives/timetable.h"

namespace railhead::collectives {
namespace {

class ReduceScatter final : public RingSchedule {
 public:
  ReduceScatter(int rank, const Operation& all)
      : RingSchedule(rank, all.ranks),
        element_(reduce::SizeOf(all.reduction.type)),
        last_step_(static_cast<size_t>(all.ranks) - 2),
        own_(all.send_parts[static_cast<size_t>(rank)].begin),
        // The part of the rank before goes first: it has the longest way.
        timetable_({.parts = all.send_parts,
                    .first = static_cast<size_t>(PreviousRank(rank, all.ranks)),
                    .steps = static_cast<size_t>(all.ranks) - 1,
                    .element = element_,
                    .largest_segment = kLargestReduceScatterSegment}),
        send_(all.send),
        receive_(all.receive),
        whole_(all.reduction),
        partial_(Partial(all.reduction)),
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

absl::Status RingReduceScatter(Messenger& messenger, int rank, const Operation& operation) {
  if (ReducedAlone(operation)) return absl::OkStatus();
  return Run(messenger, ReduceScatter(rank, operation));
}

}  // namespace railhead::collectives
