// SPDX-License-Identifier: Apache-2.0
//
// The sizes, in bytes, at which a collective in shared memory is done in another way (group.h).
#ifndef RAILHEAD_RUNTIME_SHM_LIMITS_H_
#define RAILHEAD_RUNTIME_SHM_LIMITS_H_

#include <algorithm>
#include <cstddef>

namespace railhead::shm {

// Large enough that a chunk's work is long compared with telling of it, and that what one core has
// written is on its way to the cache that all share when another reads it: from there it comes
// twice as fast as out of the other core's own.
inline constexpr size_t kLargestChunk = size_t{512} << 10U;

// Less is reduced by everybody: reducing all of it takes less time than telling once more.
inline constexpr size_t kAtOnce = size_t{8} << 10U;

// Of larger chunks the result is written for the others and for this rank in one go. Smaller ones
// are still in the first caches for a second one, and the others wait less for the first.
inline constexpr size_t kTogether = size_t{256} << 10U;

inline constexpr size_t kLine = 64;

// What a reduce-scatter's chunk has of every rank's part.
inline size_t SliceBytes(size_t ranks) {
  return std::max(kLine, kLargestChunk / ranks / kLine * kLine);
}

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_LIMITS_H_
