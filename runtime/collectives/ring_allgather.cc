// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/ring_allgather.h"

#include "runtime/collectives/ring.h"
#include "runtime/collectives/timetable.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {
namespace {

class AllGather final : public RingSchedule {
 public:
  AllGather(int rank, int world_size, const Parts& parts, std::byte* receive)
      : RingSchedule(rank, world_size),
        timetable_({.parts = parts,
                    .first = static_cast<size_t>(rank),
                    .steps = static_cast<size_t>(world_size) - 1}),
        receive_(receive) {}

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

absl::Status RingAllGather(Messenger& messenger, int rank, int world_size, const std::byte* send,
                           std::byte* receive, const Parts& parts) {
  const Range mine = parts[static_cast<size_t>(rank)];
  reduce::Copy(send, receive + mine.begin, mine.size, reduce::Stores::kNormal);
  if (parts.largest() == 0 || world_size == 1) return absl::OkStatus();
  return Run(messenger, AllGather(rank, world_size, parts, receive));
}

}  // namespace railhead::collectives
