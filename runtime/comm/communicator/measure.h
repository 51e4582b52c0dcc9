// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_MEASURE_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_MEASURE_H_

#include <climits>

#include "absl/status/statusor.h"
#include "runtime/collectives/messenger.h"
#include "runtime/comm/hierarchy/hierarchy.h"
#include "runtime/tuner/tuner.h"

namespace railhead::comm {

// What a rank knows before it measures.
struct Measurers {
  int rank = 0;
  int world_size = 1;
  int partner = 0;           // see PartnerOf
  int most_peers = INT_MAX;  // how many others it can have a connection to at once
};

// What the rails do while all ranks, two by two, send to each other: that of the slowest pair, so
// that all ranks get the same. Called by all ranks, of which there are several; takes a few
// milliseconds, or as long as a few dozen messages take. With a hierarchy (else null) the memories
// of places are measured too.
absl::StatusOr<tuner::Network> MeasureNetwork(collectives::Messenger& messenger,
                                              const Measurers& ranks, Hierarchy* hierarchy);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_MEASURE_H_
