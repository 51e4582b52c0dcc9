// SPDX-License-Identifier: Apache-2.0
//
// Reduce-scatter in log2(n) steps, by recursive halving (R. Thakur, R. Rabenseifner, W. Gropp,
// "Optimization of collective communication operations in MPICH", 2005), for any number of ranks as
// the mirror image of Bruck's all-gather (bruck_allgather.h): a rank reduces the parts of all ranks
// from itself on, at first. In each step it keeps those of 2^k ranks, the largest power of two that
// is less than their number, sends the others to the rank 2^k after it, of which they are the
// first, and adds what it receives to its own. Every rank sends and receives (n-1)/n of its values,
// as around a ring (ring_reduce_scatter.h).
//
// The order in which a part's values are reduced depends on nothing but the number of ranks, so the
// same inputs give the same bits every time.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RECURSIVE_HALVING_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RECURSIVE_HALVING_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// As RingReduceScatter (ring_reduce_scatter.h), but for the rounding: 16- and 8-bit floats are
// rounded in each step. Takes memory for half of the values or, where the ranks are not a power of
// two, for nearly all of them; and for all of them besides where parts do not follow each other.
absl::Status RecursiveHalvingReduceScatter(Messenger& messenger, int rank, int world_size,
                                           const reduce::Reduction& reduction,
                                           const std::byte* send, std::byte* receive,
                                           const Parts& parts);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RECURSIVE_HALVING_H_
