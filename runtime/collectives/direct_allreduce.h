// SPDX-License-Identifier: Apache-2.0
//
// All-reduce in one step: every rank gets all values and reduces them at once, in rank order, so
// 16- and 8-bit floats are rounded once. For few ranks and small messages.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_DIRECT_ALLREDUCE_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_DIRECT_ALLREDUCE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Like RingAllReduce (ring_allreduce.h), except for the rounding.
absl::Status DirectAllReduce(Messenger& messenger, int rank, int world_size,
                             const reduce::Reduction& reduction, const std::byte* send,
                             std::byte* receive, size_t count);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_DIRECT_ALLREDUCE_H_
