// SPDX-License-Identifier: Apache-2.0
//
// Reduce on a ring: the values start at the rank after the root; every rank adds its own and
// forwards the result, segment by segment, up to the root.
//
// Values in transit need memory of a few MiB at most on each rank.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RING_REDUCE_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RING_REDUCE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Reduces `count` values of all ranks into the root's `receive`, which is written on the root only
// and is `send` (in place) or does not overlap it. rhAvg divides by the world size. 16- and 8-bit
// floats are rounded at every rank. On an error the contents of `receive` are undefined.
absl::Status RingReduce(Messenger& messenger, int rank, int world_size, int root,
                        const reduce::Reduction& reduction, const std::byte* send,
                        std::byte* receive, size_t count);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RING_REDUCE_H_
