// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/ring.h"
#include "runtime/collectives/timetable.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {
namespace {

class AllGather final : public RingSchedule {
 public:
  AllGather(int rank, const Operation& all)
      : RingSchedule(rank, all.ranks),
        timetable_({.parts = all.receive_parts,
                    .first = static_cast<size_t>(rank),
                    .steps = static_cast<size_t>(all.ranks) - 1}),
        receive_(all.receive) {}

  size_t sends() const override { return timetable_.total(); }
  size_t receives() const override { return timetable_.total(); }

 private:
  Outgoing SendNext(size_t n) const override {
    const Range range = timetable_.Sent(n);
    return {absl::MakeConstSpan(receive_ + range.begin, range.size),
            timetable_.Step(n) == 0 ? kNothing : n - timetable_.segments()};
  }

  Incoming ReceivePrevious(size_t n) const override {
    const Range range = timetable_.Received(n);
    Incoming incoming;
    incoming.buffer.data = receive_ + range.begin;
    incoming.buffer.size = range.size;
    return incoming;
  }

  const Timetable timetable_;
  std::byte* const receive_;
};

}  // namespace

absl::Status RingAllGather(Messenger& messenger, int rank, const Operation& operation) {
  const Parts& parts = operation.receive_parts;
  const Range mine = parts[static_cast<size_t>(rank)];
  reduce::Copy(operation.send, operation.receive + mine.begin, mine.size, reduce::Stores::kNormal);
  if (parts.largest() == 0 || operation.ranks == 1) return absl::OkStatus();
  return Run(messenger, AllGather(rank, operation));
}

}  // namespace railhead::collectives
