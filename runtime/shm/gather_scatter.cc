// SPDX-License-Identifier: Apache-2.0
//
// Gather: all ranks but the root fill their cells with one chunk after the other, and the root
// takes them. Scatter: the root fills its cell with a slice of every rank's block, and each rank
// takes its own. Ranks that fill run ahead by as many chunks as they have cells.
#include <algorithm>

#include "runtime/shm/group.h"
#include "runtime/shm/limits.h"
#include "runtime/shm/stores.h"

namespace railhead::shm {

absl::Status Group::Gather(const std::byte* send, std::byte* receive, size_t block, int root,
                           const Patience& patience) {
  const auto to = static_cast<size_t>(root);
  const size_t chunk = kLargestChunk;
  const size_t chunks = (block + chunk - 1) / chunk;
  const bool inlined = block <= Lanes::kInlined;
  const reduce::Stores stores = StoresFor(2 * ranks_ * block);
  const absl::StatusOr<bool> met =
      Meet({send, block}, {receive, rank_ == to ? ranks_ * block : 0}, ranks_ * block, patience);
  if (!met.ok()) return met.status();
  if (*met) {
    GatherDirectly(Parts(ranks_, ranks_ * block), receive, stores);
    const size_t others = (ranks_ - 1) * block;
    Count(rank_ == to ? 0 : block, rank_ == to ? others : 0);
    return Depart(patience);
  }
  for (size_t index = 0; index < chunks; ++index) {
    const int64_t number = Number(index);
    const size_t offset = index * chunk;
    const size_t size = SliceOf(block, offset, chunk);
    if (rank_ != to) {
      if (absl::Status free = AwaitPlace(number, inlined, patience); !free.ok()) return free;
      reduce::Copy(send + offset, DataOf(rank_, number, inlined), size, reduce::Stores::kNormal);
      lanes_.Advance(Progress::kFilled, number);
      if (absl::Status same = CompareIfFirst(index); !same.ok()) return same;
      Count(size, 0);
    } else {
      // No rank waits for this, but all compare the root's call.
      lanes_.Advance(Progress::kFilled, number);
      reduce::Copy(send + offset, receive + rank_ * block + offset, size, stores);
      for (size_t i = 1; i < ranks_; ++i) {
        const size_t rank = (rank_ + i) % ranks_;
        if (absl::Status filled = lanes_.Await(rank, Progress::kFilled, number, patience);
            !filled.ok()) {
          return filled;
        }
        if (inlined) lanes_.FetchNext(rank, number);
        reduce::Copy(DataOf(rank, number, inlined), receive + rank * block + offset, size, stores);
      }
      Count(0, (ranks_ - 1) * size);
    }
    Reduced(number, inlined);
  }
  done_ += static_cast<int64_t>(chunks);
  return absl::OkStatus();
}

absl::Status Group::Scatter(const std::byte* send, std::byte* receive, size_t block, int root,
                            const Patience& patience) {
  const auto from = static_cast<size_t>(root);
  const size_t slice = SliceBytes(ranks_);
  const size_t chunks = (block + slice - 1) / slice;
  const bool inlined = ranks_ * block <= Lanes::kInlined;
  const size_t stride = inlined ? block : slice;
  const reduce::Stores stores = StoresFor(2 * ranks_ * block);
  const absl::StatusOr<bool> met =
      Meet({send, rank_ == from ? ranks_ * block : 0}, {}, ranks_ * block, patience);
  if (!met.ok()) return met.status();
  if (*met) {
    reduce::Copy(inputs_[from] + rank_ * block, receive, block, stores);
    const size_t others = (ranks_ - 1) * block;
    Count(rank_ == from ? others : 0, rank_ == from ? 0 : block);
    return Depart(patience);
  }
  for (size_t index = 0; index < chunks; ++index) {
    const int64_t number = Number(index);
    const size_t offset = index * slice;
    const size_t size = SliceOf(block, offset, slice);
    std::byte* const cell = DataOf(from, number, inlined);
    if (rank_ == from) {
      if (absl::Status free = AwaitPlace(number, inlined, patience); !free.ok()) return free;
      for (size_t i = 1; i < ranks_; ++i) {
        const size_t rank = (rank_ + i) % ranks_;
        reduce::Copy(send + rank * block + offset, cell + rank * stride, size,
                     reduce::Stores::kNormal);
      }
      lanes_.Advance(Progress::kFilled, number);
      if (absl::Status same = CompareIfFirst(index); !same.ok()) return same;
      reduce::Copy(send + rank_ * block + offset, receive + offset, size, stores);
      Count((ranks_ - 1) * size, 0);
    } else {
      // No rank waits for this, but all compare this rank's call.
      lanes_.Advance(Progress::kFilled, number);
      if (absl::Status filled = lanes_.Await(from, Progress::kFilled, number, patience);
          !filled.ok()) {
        return filled;
      }
      if (inlined) lanes_.FetchNext(from, number);
      reduce::Copy(cell + rank_ * stride, receive + offset, size, stores);
      Count(0, size);
    }
    Reduced(number, inlined);
  }
  done_ += static_cast<int64_t>(chunks);
  return absl::OkStatus();
}

}  // namespace railhead::shm
