// SPDX-License-Identifier: Apache-2.0
//
// All-reduce in 2 log2(n) steps that moves no more than a ring (R. Rabenseifner, "Optimization of
// collective reduction operations", 2004): in each of the first log2(n) steps a rank exchanges half
// of its remaining values with the rank whose number differs in one bit, until it has one reduced
// part; the same steps in reverse gather the parts. If the number of ranks is not a power of two,
// the others are extra ranks, as in recursive_doubling.h.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_HALVING_DOUBLING_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_HALVING_DOUBLING_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Like RingAllReduce (ring_allreduce.h).
absl::Status HalvingDoublingAllReduce(Messenger& messenger, int rank, int world_size,
                                      const reduce::Reduction& reduction, const std::byte* send,
                                      std::byte* receive, size_t count);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_HALVING_DOUBLING_H_
