// SPDX-License-Identifier: Apache-2.0
//
// Broadcast on a ring: every rank forwards what it receives, segment by segment, up to the rank
// before the root.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RING_BROADCAST_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RING_BROADCAST_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// Copies the root's `send` to every rank's `receive`. `send` is read on the root only, where it is
// `receive` (in place) or does not overlap it. On an error the contents of `receive` are undefined.
absl::Status RingBroadcast(Messenger& messenger, int rank, int world_size, int root,
                           const std::byte* send, std::byte* receive, size_t bytes);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RING_BROADCAST_H_
