// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/reducing.h"
#include "runtime/collectives/ring.h"
#include "runtime/collectives/timetable.h"

namespace railhead::collectives {
namespace {

class AllReduce final : public RingSchedule {
 public:
  AllReduce(int rank, const Operation& all)
      : RingSchedule(rank, all.ranks),
        element_(reduce::SizeOf(all.reduction.type)),
        reducing_steps_(static_cast<size_t>(all.ranks) - 1),
        timetable_({.parts = Parts(static_cast<size_t>(all.ranks), all.count),
                    .first = static_cast<size_t>(rank),
                    .steps = 2 * reducing_steps_,
                    .element = element_}),
        send_(all.send),
        receive_(all.receive),
        whole_(all.reduction),
        partial_(Partial(all.reduction)) {}

  size_t sends() const override { return timetable_.total(); }
  size_t receives() const override { return timetable_.total(); }

 private:
  Outgoing SendNext(size_t n) const override {
    const Range range = timetable_.Sent(n);
    const bool own = timetable_.Step(n) == 0;
    const std::byte* from = (own ? send_ : receive_) + range.begin * element_;
    return {absl::MakeConstSpan(from, range.size * element_),
            own ? kNothing : n - timetable_.segments()};
  }

  // The data that a finished part overwrites has been sent: the part depends on it.
  Incoming ReceivePrevious(size_t n) const override {
    const Range range = timetable_.Received(n);
    const size_t step = timetable_.Step(n);
    Incoming incoming;
    incoming.buffer.data = receive_ + range.begin * element_;
    incoming.buffer.size = range.size * element_;
    if (step < reducing_steps_) {
      incoming.buffer.operand = send_ + range.begin * element_;
      incoming.buffer.reduction = step + 1 < reducing_steps_ ? &partial_ : &whole_;
    }
    return incoming;
  }

  const size_t element_;
  const size_t reducing_steps_;
  const Timetable timetable_;
  const std::byte* const send_;
  std::byte* const receive_;
  const reduce::Reduction whole_;
  const reduce::Reduction partial_;
};

}  // namespace

absl::Status RingAllReduce(Messenger& messenger, int rank, const Operation& operation) {
  if (ReducedAlone(operation)) return absl::OkStatus();
  return Run(messenger, AllReduce(rank, operation));
}

}  // namespace railhead::collectives
