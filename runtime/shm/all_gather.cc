// SPDX-License-Identifier: Apache-2.0
//
// All-gather in two stages that overlap: fill (my chunk k+1 into my cell), and take (all others'
// chunks k).
#include <algorithm>

#include "runtime/shm/group.h"

namespace railhead::shm {

absl::Status Group::AllGather(const std::byte* send, std::byte* receive, size_t bytes,
                              const Patience& patience) {
  const size_t chunk = LargestChunk();
  const size_t chunks = (bytes + chunk - 1) / chunk;
  const reduce::Stores stores = StoresFor(ranks_ * bytes);
  for (size_t step = 0; bytes > 0 && step < chunks + 1; ++step) {
    if (step < chunks) {
      const int64_t number = Number(step);
      if (absl::Status free = AwaitCell(number, patience); !free.ok()) return free;
      const size_t offset = step * chunk;
      const size_t size = std::min(chunk, bytes - offset);
      reduce::Copy(send + offset, Cell(rank_, number), size, reduce::Stores::kNormal);
      lanes_.Advance(&Lane::filled, number);
      reduce::Copy(send + offset, receive + rank_ * bytes + offset, size, stores);
      Count((ranks_ - 1) * size, 0);
    }
    if (step > 0) {
      const int64_t number = Number(step - 1);
      const size_t offset = (step - 1) * chunk;
      const size_t size = std::min(chunk, bytes - offset);
      // Everybody begins with somebody else.
      for (size_t i = 1; i < ranks_; ++i) {
        const size_t rank = (rank_ + i) % ranks_;
        if (absl::Status filled = lanes_.Await(rank, &Lane::filled, number, patience);
            !filled.ok()) {
          return filled;
        }
        reduce::Copy(Cell(rank, number), receive + rank * bytes + offset, size, stores);
      }
      lanes_.Advance(&Lane::reduced, number);
      Count(0, (ranks_ - 1) * size);
    }
  }
  done_ += static_cast<int64_t>(chunks);
  return absl::OkStatus();
}

}  // namespace railhead::shm
