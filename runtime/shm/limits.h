// SPDX-License-Identifier: Apache-2.0
//
// Size thresholds, in bytes, of collectives in shared memory (group.h).
#ifndef RAILHEAD_RUNTIME_SHM_LIMITS_H_
#define RAILHEAD_RUNTIME_SHM_LIMITS_H_

#include <algorithm>
#include <cstddef>

namespace railhead::shm {

// Large enough that a chunk's work is long compared with its signalling, and that data written by
// one core has reached the shared cache when another reads it: twice as fast as from the other
// core's cache.
inline constexpr size_t kLargestChunk = size_t{512} << 10U;

// Smaller data is reduced by every rank: faster than one more signal.
inline constexpr size_t kAtOnce = size_t{8} << 10U;

// Larger chunks' results are written for the others and for this rank at once. Smaller ones are
// still in the first-level caches for a second write, and the others wait less for the first.
inline constexpr size_t kTogether = size_t{256} << 10U;

inline constexpr size_t kLine = 64;
inline constexpr size_t kPage = 4096;

// Cells of a rank: a chunk is filled while the previous one is reduced and the one before drained.
inline constexpr size_t kCells = 3;

// Bytes of every rank's part in a reduce-scatter's chunk.
inline size_t SliceBytes(size_t ranks) {
  return std::max(kLine, kLargestChunk / ranks / kLine * kLine);
}

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_LIMITS_H_
