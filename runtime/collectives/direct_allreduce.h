// SPDX-License-Identifier: Apache-2.0
//
// All-reduce in one step: everybody gets everybody's values, and reduces them all at once, in the
// order of ranks. So 16- and 8-bit floats are rounded once. For few ranks and small messages.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_DIRECT_ALLREDUCE_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_DIRECT_ALLREDUCE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// As RingAllReduce (ring_allreduce.h), but for the rounding.
absl::Status DirectAllReduce(Messenger& messenger, int rank, int world_size,
                             const reduce::Reduction& reduction, const std::byte* send,
                             std::byte* receive, size_t count);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_DIRECT_ALLREDUCE_H_
