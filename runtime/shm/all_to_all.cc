// SPDX-License-Identifier: Apache-2.0
//
// All-to-all in two stages that overlap: fill (what the others get of my chunk k+1 into my cell),
// and take (what the others have for me in chunk k). A chunk is a slice of every block.
#include <algorithm>

#include "runtime/shm/group.h"
#include "runtime/shm/limits.h"
#include "runtime/shm/stores.h"

namespace railhead::shm {

absl::Status Group::AllToAll(const std::byte* send, std::byte* receive, size_t block,
                             const Patience& patience) {
  const size_t slice = SliceBytes(ranks_);
  const size_t chunks = (block + slice - 1) / slice;
  const bool inlined = ranks_ * block <= Lanes::kInlined;
  const size_t stride = inlined ? block : slice;
  const reduce::Stores stores = StoresFor(2 * ranks_ * ranks_ * block);
  const size_t all = ranks_ * block;
  const absl::StatusOr<bool> met = Meet({send, all}, {}, all, patience);
  if (!met.ok()) return met.status();
  if (*met) {
    // Each rank begins with its neighbour: no two read the same memory at once.
    for (size_t step = 1; step <= ranks_; ++step) {
      const size_t rank = (rank_ + step) % ranks_;
      reduce::Copy(inputs_[rank] + rank_ * block, receive + rank * block, block, stores);
    }
    Count((ranks_ - 1) * block, (ranks_ - 1) * block);
    return Depart(patience);
  }
  for (size_t step = 0; chunks > 0 && step < chunks + 1; ++step) {
    if (step < chunks) {
      const int64_t number = Number(step);
      if (absl::Status free = AwaitPlace(number, inlined, patience); !free.ok()) return free;
      const size_t offset = step * slice;
      const size_t size = SliceOf(block, offset, slice);
      std::byte* cell = DataOf(rank_, number, inlined);
      for (size_t i = 1; i < ranks_; ++i) {
        const size_t rank = (rank_ + i) % ranks_;
        reduce::Copy(send + rank * block + offset, cell + rank * stride, size,
                     reduce::Stores::kNormal);
      }
      lanes_.Advance(Progress::kFilled, number);
      const size_t own = rank_ * block + offset;
      reduce::Copy(send + own, receive + own, size, stores);
      Count((ranks_ - 1) * size, 0);
    }
    if (step > 0) {
      const int64_t number = Number(step - 1);
      const size_t offset = (step - 1) * slice;
      const size_t size = SliceOf(block, offset, slice);
      for (size_t i = 1; i < ranks_; ++i) {
        const size_t rank = (rank_ + i) % ranks_;
        if (absl::Status filled = lanes_.Await(rank, Progress::kFilled, number, patience);
            !filled.ok()) {
          return filled;
        }
        reduce::Copy(DataOf(rank, number, inlined) + rank_ * stride,
                     receive + rank * block + offset, size, stores);
      }
      Reduced(number, inlined);
      Count(0, (ranks_ - 1) * size);
    }
  }
  done_ += static_cast<int64_t>(chunks);
  return absl::OkStatus();
}

}  // namespace railhead::shm
