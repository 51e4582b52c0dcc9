// SPDX-License-Identifier: Apache-2.0
//
// Reduce-scatter on a ring: in each of n-1 steps every rank forwards a part, and the next adds its
// own values, in an order such that a part ends at its rank. Every rank sends and receives (n-1)/n
// of its values, the minimum.
//
// Parts in transit need memory of a few MiB at most on each rank; the user's other values stay
// unchanged.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RING_REDUCE_SCATTER_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RING_REDUCE_SCATTER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Maximum segment in bytes; longer parts take several rounds (`largest_segment`).
inline constexpr size_t kLargestReduceScatterSegment = size_t{256} << 10U;

// Reduces this rank's part of all ranks' `send`, which has a part (in values) for each rank, into
// `receive`. rhAvg divides by the world size. `receive` is this rank's part of `send` (in place) or
// does not overlap it. 16- and 8-bit floats are rounded at every rank. On an error the contents of
// `receive` are undefined.
absl::Status RingReduceScatter(Messenger& messenger, int rank, int world_size,
                               const reduce::Reduction& reduction, const std::byte* send,
                               std::byte* receive, const Parts& parts);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RING_REDUCE_SCATTER_H_
