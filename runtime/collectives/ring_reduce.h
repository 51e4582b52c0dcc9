// SPDX-License-Identifier: Apache-2.0
//
// Reduce around a ring: the values come from the rank after the root, and every rank adds its own
// to what it passes on, a segment at a time, until they have come to the root.
//
// Values on their way stand in memory of the rank that they pass, of a few MiB at most.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RING_REDUCE_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RING_REDUCE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Reduces `count` values of all ranks into the root's `receive`, which is written there alone and
// is `send` (in place) or does not overlap it. For rhAvg the divisor is the world's size. 16- and
// 8-bit floats are rounded at every rank. On an error the contents of `receive` are undefined.
absl::Status RingReduce(Messenger& messenger, int rank, int world_size, int root,
                        const reduce::Reduction& reduction, const std::byte* send,
                        std::byte* receive, size_t count);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RING_REDUCE_H_
