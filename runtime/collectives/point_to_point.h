// SPDX-License-Identifier: Apache-2.0
//
// Groups of sends and receives: all progress concurrently, so that no order of them can deadlock.
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
  std::byte* data = nullptr;  // read-only if sent
  size_t bytes = 0;
};

// Returns an error unless each send of this rank to itself matches a receive of its size.
absl::Status WrongOwn(int rank, absl::Span<const Transfer> transfers);

// Performs all transfers. The n-th send to a rank matches the n-th receive from this rank there.
// WrongOwn must be OK.
absl::Status RunTransfers(Messenger& messenger, int rank, absl::Span<const Transfer> transfers);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_POINT_TO_POINT_H_
