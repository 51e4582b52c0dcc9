// SPDX-License-Identifier: Apache-2.0
//
// Broadcast of large messages to many ranks as a scatter and an all-gather (M. Barnett et al.,
// "Interprocessor collective communication library (InterCom)", 1994; R. van de Geijn): the root
// divides its message into one part per rank and scatters the parts along a binomial tree
// (binomial_place.h); the ranks gather them in log2(n) steps (bruck_allgather.h). Every rank
// receives about twice the message, in 2 log2(n) steps. The root receives nothing.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_SCATTER_ALLGATHER_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_SCATTER_ALLGATHER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// Like RingBroadcast (ring_broadcast.h).
absl::Status ScatterAllGatherBroadcast(Messenger& messenger, int rank, int world_size, int root,
                                       const std::byte* send, std::byte* receive, size_t bytes);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_SCATTER_ALLGATHER_H_
