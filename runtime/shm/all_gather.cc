// SPDX-License-Identifier: Apache-2.0
//
// All-gather in two stages that overlap: fill (my chunk k+1 into my cell), and take (all others'
// chunks k).
#include <algorithm>

#include "runtime/shm/group.h"
#include "runtime/shm/limits.h"
#include "runtime/shm/stores.h"

namespace railhead::shm {

absl::Status Group::AllGather(const std::byte* send, std::byte* receive, const Parts& parts,
                              const Patience& patience) {
  const size_t chunk = kLargestChunk;
  const size_t chunks = (parts.largest() + chunk - 1) / chunk;
  const bool inlined = parts.largest() <= Lanes::kInlined;
  const reduce::Stores stores = StoresFor(ranks_ * (ranks_ + 1) * parts.largest());
  const Range mine = parts[rank_];
  const size_t end = parts.end();
  const absl::StatusOr<bool> met = Meet({send, mine.size}, {receive, end}, end, patience);
  if (!met.ok()) return met.status();
  if (*met) {
    GatherDirectly(parts, receive, stores);
    Count((ranks_ - 1) * mine.size, parts.total() - mine.size);
    return Depart(patience);
  }
  for (size_t step = 0; chunks > 0 && step < chunks + 1; ++step) {
    if (step < chunks) {
      const int64_t number = Number(step);
      if (absl::Status free = AwaitPlace(number, inlined, patience); !free.ok()) return free;
      const size_t offset = step * chunk;
      const size_t size = SliceOf(mine.size, offset, chunk);
      reduce::Copy(send + offset, DataOf(rank_, number, inlined), size, reduce::Stores::kNormal);
      lanes_.Advance(Progress::kFilled, number);
      reduce::Copy(send + offset, receive + mine.begin + offset, size, stores);
      Count((ranks_ - 1) * size, 0);
    }
    if (step > 0) {
      const int64_t number = Number(step - 1);
      const size_t offset = (step - 1) * chunk;
      size_t taken = 0;
      // Each rank begins with a different one.
      for (size_t i = 1; i < ranks_; ++i) {
        const size_t rank = (rank_ + i) % ranks_;
        if (absl::Status filled = lanes_.Await(rank, Progress::kFilled, number, patience);
            !filled.ok()) {
          return filled;
        }
        const Range part = parts[rank];
        const size_t size = SliceOf(part.size, offset, chunk);
        reduce::Copy(DataOf(rank, number, inlined), receive + part.begin + offset, size, stores);
        taken += size;
      }
      Reduced(number, inlined);
      Count(0, taken);
    }
  }
  done_ += static_cast<int64_t>(chunks);
  return absl::OkStatus();
}

}  // namespace railhead::shm
