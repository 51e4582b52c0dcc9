// SPDX-License-Identifier: Apache-2.0
//
// Reduce-scatter around a ring: in each of n-1 steps every rank passes on a part, and the next one
// adds its own values, such that a part comes last to the rank that wants it. Every rank sends and
// receives (n-1)/n of its values, the least that is possible.
//
// Parts on their way stand in memory of the rank that they pass, of a few MiB at most; the user's
// other values stay as they are.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RING_REDUCE_SCATTER_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RING_REDUCE_SCATTER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Longer parts go round in several rounds, of at most so many segments each (timetable.h).
inline constexpr size_t kLargestReduceScatterSegment = size_t{256} << 10U;

// `send` has a part (in values) for each rank; the reduction of all ranks' values for this one gets
// into `receive`. For rhAvg the divisor is the world's size. `receive` is
// this rank's part of `send` (in place) or does not overlap it. 16- and 8-bit floats are rounded
// at every rank. On an error the contents of `receive` are undefined.
absl::Status RingReduceScatter(Messenger& messenger, int rank, int world_size,
                               const reduce::Reduction& reduction, const std::byte* send,
                               std::byte* receive, const Parts& parts);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RING_REDUCE_SCATTER_H_
