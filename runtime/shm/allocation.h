// SPDX-License-Identifier: Apache-2.0
//
// Memory of this process that it can give to others: what rhMemAlloc returns. Any thread.
#ifndef RAILHEAD_RUNTIME_SHM_ALLOCATION_H_
#define RAILHEAD_RUNTIME_SHM_ALLOCATION_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/shm/segment.h"

namespace railhead::shm {

// At least so many bytes of zeros, aligned to a page. ResourceExhausted when that is too much.
absl::StatusOr<std::byte*> Allocate(size_t bytes);

// InvalidArgument unless it is what Allocate returned, once. Windows keep the memory until they are
// closed.
absl::Status Free(std::byte* memory);

// Which segment these bytes are in; null: they are not all in one.
std::shared_ptr<const Segment> SegmentOf(const std::byte* memory, size_t bytes);

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_ALLOCATION_H_
