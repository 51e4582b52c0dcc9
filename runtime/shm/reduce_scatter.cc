// SPDX-License-Identifier: Apache-2.0
//
// Reduce-scatter in two stages that overlap: fill (what the others need of my chunk k+1 into my
// cell), and reduce (what I get of chunk k, of all ranks' inputs at once, straight to where it
// belongs). A chunk is a slice of every rank's part.
#include <algorithm>

#include "runtime/shm/group.h"
#include "runtime/shm/limits.h"
#include "runtime/shm/stores.h"

namespace railhead::shm {

absl::Status Group::ReduceScatter(const reduce::Reduction& reduction, const std::byte* send,
                                  std::byte* receive, const Parts& parts,
                                  const Patience& patience) {
  const size_t element = reduce::SizeOf(reduction.type);
  const size_t largest = parts.largest() * element;
  const size_t slice = SliceBytes(ranks_);
  const size_t chunks = (largest + slice - 1) / slice;
  const bool inlined = ranks_ * largest <= Lanes::kInlined;
  const size_t stride = inlined ? largest : slice;
  const reduce::Stores stores = StoresFor(ranks_ * (ranks_ + 1) * largest);
  const size_t end = parts.end() * element;
  const absl::StatusOr<bool> met = Meet({send, end}, {}, end, patience);
  if (!met.ok()) return met.status();
  if (*met) {
    const Range mine = parts[rank_];
    outputs_[rank_] = receive;
    Directly(reduction, inputs_, mine.begin * element, 0, mine.size, stores);
    Count((parts.total() - mine.size) * element, (ranks_ - 1) * mine.size * element);
    return Depart(patience);
  }
  for (size_t step = 0; chunks > 0 && step < chunks + 1; ++step) {
    if (step < chunks) {
      const int64_t number = Number(step);
      if (absl::Status free = AwaitPlace(number, inlined, patience); !free.ok()) return free;
      const size_t offset = step * slice;
      std::byte* cell = DataOf(rank_, number, inlined);
      size_t given = 0;
      for (size_t rank = 0; rank < ranks_; ++rank) {
        // The part that this rank reduces itself is read from the input.
        if (rank == rank_) continue;
        const Range part = parts[rank];
        const size_t size = SliceOf(part.size * element, offset, slice);
        if (size == 0) continue;
        reduce::Copy(send + part.begin * element + offset, cell + rank * stride, size,
                     reduce::Stores::kNormal);
        given += size;
      }
      lanes_.Advance(Progress::kFilled, number);
      Count(given, 0);
    }
    if (step > 0) {
      const int64_t number = Number(step - 1);
      const size_t offset = (step - 1) * slice;
      if (absl::Status filled = lanes_.AwaitAll(Progress::kFilled, number, patience);
          !filled.ok()) {
        return filled;
      }
      const Range mine = parts[rank_];
      const size_t size = SliceOf(mine.size * element, offset, slice);
      for (size_t rank = 0; size > 0 && rank < ranks_; ++rank) {
        inputs_[rank] = rank == rank_ ? send + mine.begin * element + offset
                                      : DataOf(rank, number, inlined) + rank_ * stride;
      }
      if (size > 0) reduce::Reduce(reduction, inputs_, receive + offset, size / element, stores);
      Reduced(number, inlined);
      Count(0, (ranks_ - 1) * size);
    }
  }
  done_ += static_cast<int64_t>(chunks);
  return absl::OkStatus();
}

}  // namespace railhead::shm
