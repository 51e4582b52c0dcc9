// SPDX-License-Identifier: Apache-2.0
//
// Broadcast, reduce, gather and scatter of small messages in log2(n) steps, along a binomial tree
// (binomial_place.h).
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_BINOMIAL_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_BINOMIAL_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Like RingBroadcast (ring_broadcast.h).
absl::Status BinomialBroadcast(Messenger& messenger, int rank, int world_size, int root,
                               const std::byte* send, std::byte* receive, size_t bytes);

// Like RingReduce (ring_reduce.h).
absl::Status BinomialReduce(Messenger& messenger, int rank, int world_size, int root,
                            const reduce::Reduction& reduction, const std::byte* send,
                            std::byte* receive, size_t count);

// Like DirectGather and DirectScatter (direct.h).
absl::Status BinomialGather(Messenger& messenger, int rank, int world_size, int root,
                            const std::byte* send, std::byte* receive, size_t bytes);
absl::Status BinomialScatter(Messenger& messenger, int rank, int world_size, int root,
                             const std::byte* send, std::byte* receive, size_t bytes);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_BINOMIAL_H_
