// SPDX-License-Identifier: Apache-2.0
//
// All-reduce of small messages in log2(n) steps: in step k every rank exchanges all its values with
// the rank whose number differs in bit k, and both reduce. If the number of ranks is not a power of
// two, the first few pair up before, and get the result afterwards.
//
// Both sides of an exchange reduce the same two operands, and operators are commutative bit for
// bit: all ranks get identical results.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RECURSIVE_DOUBLING_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RECURSIVE_DOUBLING_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Like RingAllReduce (ring_allreduce.h).
absl::Status RecursiveDoublingAllReduce(Messenger& messenger, int rank, int world_size,
                                        const reduce::Reduction& reduction, const std::byte* send,
                                        std::byte* receive, size_t count);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RECURSIVE_DOUBLING_H_
