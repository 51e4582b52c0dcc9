// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/ring_broadcast.h"

#include "runtime/collectives/ring.h"
#include "runtime/collectives/timetable.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {
namespace {

class Broadcast final : public RingSchedule {
 public:
  Broadcast(int rank, int world_size, int root, std::byte* data, size_t bytes)
      : RingSchedule(rank, world_size),
        first_(rank == root),
        last_(NextRank(rank, world_size) == root),
        train_(bytes),
        data_(data) {}

  size_t sends() const override { return last_ ? 0 : train_.size(); }
  size_t receives() const override { return first_ ? 0 : train_.size(); }

 private:
  Outgoing SendNext(size_t n) const override {
    const Range range = train_.At(n);
    return {absl::MakeConstSpan(data_ + range.begin, range.size), first_ ? kNothing : n};
  }

  Incoming ReceivePrevious(size_t n) const override {
    const Range range = train_.At(n);
    Incoming incoming;
    incoming.buffer.data = data_ + range.begin;
    incoming.buffer.size = range.size;
    return incoming;
  }

  const bool first_;
  const bool last_;
  const Train train_;
  std::byte* const data_;
};

}  // namespace

absl::Status RingBroadcast(Messenger& messenger, int rank, int world_size, int root,
                           const std::byte* send, std::byte* receive, size_t bytes) {
  if (rank == root) reduce::Copy(send, receive, bytes, reduce::Stores::kNormal);
  return Run(messenger, Broadcast(rank, world_size, root, receive, bytes));
}

}  // namespace railhead::collectives
