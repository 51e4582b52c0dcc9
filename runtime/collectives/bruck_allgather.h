// SPDX-License-Identifier: Apache-2.0
//
// All-gather in log2(n) steps, for any number of ranks (J. Bruck et al., "Efficient algorithms for
// all-to-all communications in multiport message-passing systems", 1997): in step k a rank, which
// has the parts of the 2^k ranks from itself on, sends them to the rank 2^k before it. Every rank
// sends and receives (n-1)/n of the result, as around a ring (ring_allgather.h), but to ranks that
// may be far away.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_BRUCK_ALLGATHER_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_BRUCK_ALLGATHER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// As RingAllGather (ring_allgather.h). Parts that do not follow each other are gathered in other
// memory first.
absl::Status BruckAllGather(Messenger& messenger, int rank, int world_size, const std::byte* send,
                            std::byte* receive, const Parts& parts);

// How many parts, from its own on, a rank has before the first step.
using PartsBefore = size_t (*)(size_t rank, size_t ranks);

// The steps alone, on parts of `data` that follow each other. What a rank has already is neither
// sent to it nor written.
absl::Status GatherAround(Messenger& messenger, int rank, std::byte* data, const Parts& parts,
                          PartsBefore before);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_BRUCK_ALLGATHER_H_
