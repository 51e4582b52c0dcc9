// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/ring_allgather.h"

#include "runtime/collectives/ring.h"
#include "runtime/collectives/timetable.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {
namespace {

class AllGather final : public RingSchedule {
 public:
  AllGather(int rank, int world_size, std::byte* receive, size_t bytes)
      : timetable_({.ranks = static_cast<size_t>(world_size),
                    .first = static_cast<size_t>(rank),
                    .steps = static_cast<size_t>(world_size) - 1,
                    .count = static_cast<size_t>(world_size) * bytes}),
        receive_(receive) {}

  size_t sends() const override { return timetable_.total(); }
  size_t receives() const override { return timetable_.total(); }

  Outgoing Send(size_t n) const override {
    const Range range = timetable_.Sent(n);
    return {absl::MakeConstSpan(receive_ + range.begin, range.size),
            timetable_.Step(n) == 0 ? kNothing : n - timetable_.segments()};
  }

  Incoming Receive(size_t n) const override {
    const Range range = timetable_.Received(n);
    Incoming incoming;
    incoming.buffer.data = receive_ + range.begin;
    incoming.buffer.size = range.size;
    return incoming;
  }

 private:
  const Timetable timetable_;
  std::byte* const receive_;
};

}  // namespace

absl::Status RingAllGather(Messenger& messenger, int rank, int world_size, const std::byte* send,
                           std::byte* receive, size_t bytes) {
  reduce::Copy(send, receive + static_cast<size_t>(rank) * bytes, bytes, reduce::Stores::kNormal);
  if (bytes == 0 || world_size == 1) return absl::OkStatus();
  return RunRing(messenger, PreviousRank(rank, world_size), NextRank(rank, world_size),
                 AllGather(rank, world_size, receive, bytes));
}

}  // namespace railhead::collectives
