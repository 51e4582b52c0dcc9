// SPDX-License-Identifier: Apache-2.0
//
// Memory of this process that other ranks can map: the result of rhMemAlloc. Thread-safe.
#ifndef RAILHEAD_RUNTIME_SHM_ALLOCATION_H_
#define RAILHEAD_RUNTIME_SHM_ALLOCATION_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/shm/segment.h"

namespace railhead::shm {

// Returns at least `bytes` bytes of zeros, page aligned. ResourceExhausted if that is too much.
absl::StatusOr<std::byte*> Allocate(size_t bytes);

// InvalidArgument unless it is a result of Allocate, not freed yet. Open windows keep the memory.
absl::Status Free(std::byte* memory);

// Returns the segment that contains all these bytes; null if none does.
std::shared_ptr<const Segment> SegmentOf(const std::byte* memory, size_t bytes);

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_ALLOCATION_H_
