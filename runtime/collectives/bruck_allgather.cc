// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <memory>

#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/arc.h"
#include "runtime/collectives/gather_around.h"
#include "runtime/collectives/schedule.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {
namespace {

// Each step is one message each way, or two where the parts go past those of the last rank.
class Doubling final : public Schedule {
 public:
  Doubling(size_t rank, std::byte* data, const Parts& parts, PartsBefore before)
      : rank_(rank),
        ranks_(parts.ranks()),
        steps_(static_cast<size_t>(std::bit_width(ranks_ - 1))),
        data_(data),
        parts_(parts),
        before_(before) {}

  size_t sends() const override { return Arc::kPieces * steps_; }
  size_t receives() const override { return Arc::kPieces * steps_; }

  Outgoing Send(size_t n) const override {
    const size_t step = n / Arc::kPieces;
    const size_t peer = (rank_ + ranks_ - (size_t{1} << step)) % ranks_;
    const Range range = Exchanged(n, rank_, peer);
    Outgoing outgoing = To(static_cast<int>(peer), data_ + range.begin, range.size);
    if (step > 0) outgoing.needs = Arc::kPieces * step - 1;
    return outgoing;
  }

  Incoming Receive(size_t n) const override {
    const size_t peer = (rank_ + (size_t{1} << n / Arc::kPieces)) % ranks_;
    const Range range = Exchanged(n, peer, rank_);
    return From(static_cast<int>(peer), data_ + range.begin, range.size);
  }

 private:
  // Returns the values that message n brings from one rank to another.
  Range Exchanged(size_t n, size_t from, size_t to) const {
    const size_t distance = size_t{1} << n / Arc::kPieces;
    const size_t count = std::min(distance, ranks_ - distance);
    if (before_(to, ranks_) >= distance + count) return {};
    return Arc(parts_, from, count)[n % Arc::kPieces];
  }

  const size_t rank_;
  const size_t ranks_;
  const size_t steps_;
  std::byte* const data_;
  const Parts parts_;
  const PartsBefore before_;
};

}  // namespace

absl::Status GatherAround(Messenger& messenger, int rank, std::byte* data, const Parts& parts,
                          PartsBefore before) {
  return Run(messenger, Doubling(static_cast<size_t>(rank), data, parts, before));
}

absl::Status BruckAllGather(Messenger& messenger, int rank, const Operation& operation) {
  const Parts& parts = operation.receive_parts;
  const std::byte* const send = operation.send;
  std::byte* const receive = operation.receive;
  const PartsBefore own = [](size_t /*rank*/, size_t /*ranks*/) { return size_t{1}; };
  const auto self = static_cast<size_t>(rank);
  const Range mine = parts[self];
  reduce::Copy(send, receive + mine.begin, mine.size, reduce::Stores::kNormal);
  if (FollowEachOther(parts)) return GatherAround(messenger, rank, receive, parts, own);
  const PackedParts packed(parts);
  const Parts list = packed.Of();
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(packed.total());
  reduce::Copy(send, memory.get() + list[self].begin, mine.size, reduce::Stores::kNormal);
  absl::Status done = GatherAround(messenger, rank, memory.get(), list, own);
  for (size_t r = 0; done.ok() && r < parts.ranks(); ++r) {
    if (r == self) continue;
    reduce::Copy(memory.get() + list[r].begin, receive + parts[r].begin, parts[r].size,
                 reduce::Stores::kNormal);
  }
  return done;
}

}  // namespace railhead::collectives
