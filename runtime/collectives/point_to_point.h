// SPDX-License-Identifier: Apache-2.0
//
// Sends and receives that a caller put together: all are under way at once, so that no order of
// them can make ranks wait for each other in a circle.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_POINT_TO_POINT_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_POINT_TO_POINT_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

struct Transfer {
  enum class Direction { kSend, kReceive };
  Direction direction = Direction::kSend;
  int peer = -1;
  std::byte* data = nullptr;  // not written to when it is sent
  size_t bytes = 0;
};

// What is wrong with those between this rank and itself: each send meets a receive of its size.
absl::Status WrongOwn(int rank, absl::Span<const Transfer> transfers);

// Does them all. The n-th send to a rank meets the n-th receive from this rank there; WrongOwn is
// OK.
absl::Status RunTransfers(Messenger& messenger, int rank, absl::Span<const Transfer> transfers);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_POINT_TO_POINT_H_
