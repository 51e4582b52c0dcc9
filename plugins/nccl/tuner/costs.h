// SPDX-License-Identifier: Apache-2.0
//
// Corrects NCCL's cost table where the network is slower than NCCL was told. Pure: equal arguments
// give equal tables on every rank.
#ifndef RAILHEAD_PLUGINS_NCCL_TUNER_COSTS_H_
#define RAILHEAD_PLUGINS_NCCL_TUNER_COSTS_H_

#include <cstddef>

#include "absl/types/span.h"
#include "plugins/nccl/tuner/network_rates.h"

namespace railhead::nccl {

struct CommunicatorSize {
  size_t ranks = 1;
  size_t nodes = 1;
};

// One collective call, with the numbers of abi/tuner.h.
struct CollectiveCall {
  int collective = 0;
  size_t bytes = 0;  // of the larger of its two buffers
};

// Returns the bytes that the algorithm sends from the node that sends most, or into the one that
// receives most, over the network; without the overhead of the protocol. 0 on one node. For
// algorithms that are not known: `bytes`, which is what a reduction or a broadcast needs at least.
double NetworkBytes(const CommunicatorSize& size, const CollectiveCall& call, int algorithm);

// Adds to each cost the time by which the network needs longer for these bytes than at the speed
// that NCCL was told. Costs never fall, so that no entry is preferred by force; negative ones are
// excluded, and stay. `costs`: rows of abi::kProtocols times in microseconds; a table of another
// shape is left as it is.
void CorrectCosts(const CommunicatorSize& size, const CollectiveCall& call,
                  const NetworkRates& rates, absl::Span<float> costs, int protocols);

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_TUNER_COSTS_H_
