// SPDX-License-Identifier: Apache-2.0
//
// All-reduce on a ring. The values are divided into one part per rank. In the first n-1 steps every
// rank sends a part to the next rank, which adds its own values: then each rank has one finished
// part. In the second n-1 steps the finished parts travel around. Every rank sends and receives
// 2(n-1)/n of the values, the minimum.
//
// Parts travel in segments, so that one is added while the next is in flight. Each value is summed
// in one order on one rank and then copied: all ranks get identical bits, every time.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RING_ALLREDUCE_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RING_ALLREDUCE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Reduces `count` values of all ranks into `receive`; rhAvg divides by the world size. `receive` is
// `send` (in place) or does not overlap it. 16- and 8-bit floats are rounded at every rank. On an
// error the contents of `receive` are undefined.
absl::Status RingAllReduce(Messenger& messenger, int rank, int world_size,
                           const reduce::Reduction& reduction, const std::byte* send,
                           std::byte* receive, size_t count);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RING_ALLREDUCE_H_
