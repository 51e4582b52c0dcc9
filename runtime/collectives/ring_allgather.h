// SPDX-License-Identifier: Apache-2.0
//
// All-gather on a ring: in each of n-1 steps every rank forwards the part received in the previous
// step, its own part first. Every rank sends and receives (n-1)/n of the result, the minimum.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RING_ALLGATHER_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RING_ALLGATHER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// Gathers all parts (in bytes) in `receive`. `send` is this rank's part, in `receive` (in place) or
// separate. On an error the contents of `receive` are undefined.
absl::Status RingAllGather(Messenger& messenger, int rank, int world_size, const std::byte* send,
                           std::byte* receive, const Parts& parts);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RING_ALLGATHER_H_
