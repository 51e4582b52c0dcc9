// SPDX-License-Identifier: Apache-2.0
//
// Window: memory of each rank of a group that all ranks can access, so that data in it need not be
// copied for others (direct.cc). After a failed call a rank keeps what others might still write to
// for itself: windows do not reach it any more.
#ifndef RAILHEAD_RUNTIME_SHM_WINDOW_H_
#define RAILHEAD_RUNTIME_SHM_WINDOW_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "runtime/shm/segment.h"

namespace railhead::shm {

struct Window {
  // By rank, at this process's addresses; its own at the user's address.
  std::vector<absl::Span<std::byte>> memory;
  // Keep the memory mapped.
  std::vector<std::shared_ptr<const Segment>> segments;
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_WINDOW_H_
