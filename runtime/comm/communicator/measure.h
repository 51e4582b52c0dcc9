// SPDX-License-Identifier: Apache-2.0
//
// Measurement of the network at the start of a communicator, for the tuner.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_MEASURE_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_MEASURE_H_

#include <climits>

#include "absl/status/statusor.h"
#include "runtime/collectives/messenger.h"
#include "runtime/comm/hierarchy/hierarchy.h"
#include "runtime/tuner/tuner.h"

namespace railhead::comm {

// Input of the measurement on this rank.
struct Measurers {
  int rank = 0;
  int world_size = 1;
  int partner = 0;           // see Partners (setup/partners.h)
  int most_peers = INT_MAX;  // maximum number of peers that it can be connected to at once
};

// Measures the rails while all ranks exchange messages in pairs. Returns the figures of the slowest
// pair, so all ranks get the same. All ranks of a world of at least two must call it. It takes a
// few milliseconds, or the time of a few dozen messages. With a hierarchy (or null) it also
// measures the memories of places.
absl::StatusOr<tuner::Network> MeasureNetwork(collectives::Messenger& messenger,
                                              const Measurers& ranks, Hierarchy* hierarchy);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_MEASURE_H_
