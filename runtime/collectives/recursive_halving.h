// SPDX-License-Identifier: Apache-2.0
//
// Reduce-scatter in log2(n) steps by recursive halving (R. Thakur, R. Rabenseifner, W. Gropp,
// "Optimization of collective communication operations in MPICH", 2005), for any number of ranks as
// the mirror image of Bruck's all-gather (bruck_allgather.h). At first a rank reduces the parts of
// all ranks from itself. In each step it keeps those of 2^k ranks, the largest power of two less
// than their number, sends the others to the rank 2^k after it, which is the first of them, and
// adds what it receives to its own. Every rank sends and receives (n-1)/n of its values, as on a
// ring (ring_reduce_scatter.h).
//
// The order of reduction of a part depends on the number of ranks only, so the same inputs always
// give the same bits.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RECURSIVE_HALVING_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RECURSIVE_HALVING_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Like RingReduceScatter (ring_reduce_scatter.h), except for the rounding: 16- and 8-bit floats are
// rounded in each step. Needs memory for half of the values or, if the number of ranks is not a
// power of two, for nearly all; and for all values more if parts are not consecutive.
absl::Status RecursiveHalvingReduceScatter(Messenger& messenger, int rank, int world_size,
                                           const reduce::Reduction& reduction,
                                           const std::byte* send, std::byte* receive,
                                           const Parts& parts);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RECURSIVE_HALVING_H_
