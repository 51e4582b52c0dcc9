// SPDX-License-Identifier: Apache-2.0
//
// The steps of Bruck's all-gather (algorithms.h), which a broadcast uses, too.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_GATHER_AROUND_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_GATHER_AROUND_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// Number of parts, from its own, that a rank has before the first step.
using PartsBefore = size_t (*)(size_t rank, size_t ranks);

// Performs the steps on consecutive parts of `data`. Parts that a rank has are neither sent to it
// nor written.
absl::Status GatherAround(Messenger& messenger, int rank, std::byte* data, const Parts& parts,
                          PartsBefore before);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_GATHER_AROUND_H_
