// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/ring_allreduce.h"

#include "runtime/collectives/reducing.h"
#include "runtime/collectives/ring.h"
#include "runtime/collectives/timetable.h"

namespace railhead::collectives {
namespace {

class AllReduce final : public RingSchedule {
 public:
  AllReduce(int rank, int world_size, const reduce::Reduction& reduction, const std::byte* send,
            std::byte* receive, size_t count)
      : RingSchedule(rank, world_size),
        element_(reduce::SizeOf(reduction.type)),
        reducing_steps_(static_cast<size_t>(world_size) - 1),
        timetable_({.parts = Parts(static_cast<size_t>(world_size), count),
                    .first = static_cast<size_t>(rank),
                    .steps = 2 * reducing_steps_,
                    .element = element_}),
        send_(send),
        receive_(receive),
        whole_(reduction),
        partial_(Partial(reduction)) {}

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

absl::Status RingAllReduce(Messenger& messenger, int rank, int world_size,
                           const reduce::Reduction& reduction, const std::byte* send,
                           std::byte* receive, size_t count) {
  if (ReducedAlone(world_size, reduction, send, receive, count)) return absl::OkStatus();
  return Run(messenger, AllReduce(rank, world_size, reduction, send, receive, count));
}

}  // namespace railhead::collectives
