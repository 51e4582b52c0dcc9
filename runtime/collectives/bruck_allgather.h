// SPDX-License-Identifier: Apache-2.0
//
// All-gather in log2(n) steps, for any number of ranks (J. Bruck et al., "Efficient algorithms for
// all-to-all communications in multiport message-passing systems", 1997): in step k a rank, which
// has the parts of the 2^k ranks from itself, sends them to the rank 2^k before it. Every rank
// sends and receives (n-1)/n of the result, as on a ring (ring_allgather.h), but to distant ranks.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_BRUCK_ALLGATHER_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_BRUCK_ALLGATHER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// Like RingAllGather (ring_allgather.h). Parts that are not consecutive are gathered in temporary
// memory.
absl::Status BruckAllGather(Messenger& messenger, int rank, int world_size, const std::byte* send,
                            std::byte* receive, const Parts& parts);

// Number of parts, from its own, that a rank has before the first step.
using PartsBefore = size_t (*)(size_t rank, size_t ranks);

// Performs the steps only, on consecutive parts of `data`. Parts that a rank has are neither sent
// to it nor written.
absl::Status GatherAround(Messenger& messenger, int rank, std::byte* data, const Parts& parts,
                          PartsBefore before);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_BRUCK_ALLGATHER_H_
