// SPDX-License-Identifier: Apache-2.0
//
// Broadcast: the root fills its cell with one chunk after the other, and all others drain it. The
// root runs ahead by as many chunks as it has cells.
#include <algorithm>

#include "runtime/shm/group.h"
#include "runtime/shm/limits.h"
#include "runtime/shm/stores.h"

namespace railhead::shm {

absl::Status Group::Broadcast(const std::byte* send, std::byte* receive, size_t bytes, int root,
                              const Patience& patience) {
  const auto from = static_cast<size_t>(root);
  const size_t chunk = kLargestChunk;
  const size_t chunks = (bytes + chunk - 1) / chunk;
  const bool inlined = bytes <= Lanes::kInlined;
  const reduce::Stores stores = StoresFor((ranks_ + 1) * bytes);
  const absl::StatusOr<bool> met =
      Meet({send, rank_ == from ? bytes : 0}, {receive, bytes}, bytes, patience);
  if (!met.ok()) return met.status();
  if (*met) {
    // Each rank gives all others a part of the root's data.
    const Part inside = Inside(bytes, 1);
    const Part mine = Mine(inside.size());
    const size_t begin = inside.begin + mine.begin;
    Directly(kBytes, {&inputs_[from], 1}, begin, begin, mine.size(), stores);
    for (const Part& end : {Part{0, inside.begin}, Part{inside.end, bytes}}) {
      reduce::Copy(inputs_[from] + end.begin, receive + end.begin, end.size(),
                   reduce::Stores::kNormal);
    }
    Count(rank_ == from ? (ranks_ - 1) * bytes : 0, rank_ == from ? 0 : bytes);
    return Depart(patience);
  }
  for (size_t index = 0; index < chunks; ++index) {
    const int64_t number = Number(index);
    const size_t offset = index * chunk;
    const size_t size = std::min(chunk, bytes - offset);
    std::byte* cell = DataOf(from, number, inlined);
    if (rank_ == from) {
      if (absl::Status free = AwaitPlace(number, inlined, patience); !free.ok()) return free;
      reduce::Copy(send + offset, cell, size, reduce::Stores::kNormal);
      lanes_.Advance(Progress::kFilled, number);
      if (absl::Status same = CompareIfFirst(index); !same.ok()) return same;
      reduce::Copy(send + offset, receive + offset, size, stores);
      Count((ranks_ - 1) * size, 0);
    } else {
      // No rank waits for this fill, but the counter must stay near those of other ranks.
      lanes_.Advance(Progress::kFilled, number);
      if (absl::Status filled = lanes_.Await(from, Progress::kFilled, number, patience);
          !filled.ok()) {
        return filled;
      }
      if (inlined) lanes_.FetchNext(from, number);
      reduce::Copy(cell, receive + offset, size, stores);
      Count(0, size);
    }
    Reduced(number, inlined);
  }
  done_ += static_cast<int64_t>(chunks);
  return absl::OkStatus();
}

}  // namespace railhead::shm
