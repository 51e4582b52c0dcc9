// SPDX-License-Identifier: Apache-2.0
//
// A window: a piece of memory of each rank of a group that all of them can reach, so that what lies
// there need not be copied for others (direct.cc).
#ifndef RAILHEAD_RUNTIME_SHM_WINDOW_H_
#define RAILHEAD_RUNTIME_SHM_WINDOW_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "runtime/shm/segment.h"

namespace railhead::shm {

struct Window {
  // By rank, where this process sees it: its own where its user does.
  std::vector<absl::Span<std::byte>> memory;
  // What keeps it there.
  std::vector<std::shared_ptr<const Segment>> segments;
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_WINDOW_H_
