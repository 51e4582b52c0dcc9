// SPDX-License-Identifier: Apache-2.0
//
// Table of algorithms: for each collective over messages, its algorithms with name, function, cost
// and memory. Used by the tuner, the communicator, RAILHEAD_ALGO and --explain. To add an
// algorithm, add an entry.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_WAYS_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_WAYS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/collectives/collective.h"
#include "runtime/collectives/messenger.h"
#include "runtime/collectives/operation.h"

namespace railhead::collectives {

// An algorithm over messages (algorithms.h).
using AlgorithmFunction = absl::Status(Messenger& messenger, int rank, const Operation& operation);

// Terms of a cost, for n ranks and the bytes of the larger of a rank's two buffers.
struct Terms {
  // A message takes `alpha` seconds plus `beta` per byte; reducing takes `gamma` per byte.
  Terms(size_t bytes, int ranks, double alpha, double beta, double gamma);

  double n;
  double log;       // steps of a tree or an exchange
  double odd;       // 1 if there are extra ranks, beyond a power of two
  double a;         // alpha
  double whole;     // time to send all bytes
  double far;       // the same, while all ranks send to distant ranks
  double work;      // time to reduce all bytes
  double segments;  // segments of a pipeline through all ranks
};

// Number of peers of a rank.
enum class Peers { kFew, kAll };

struct Way {
  Collective collective;
  Algorithm algorithm;
  // Null for the hierarchy: shared memory inside places, and another algorithm between them
  // (hierarchy.h).
  AlgorithmFunction* run;
  double (*seconds)(const Terms& terms);
  // Memory of a rank besides its buffers; a few MiB count as zero.
  size_t (*memory)(size_t bytes, int ranks);
  Peers peers = Peers::kFew;
  // Algorithm with the same messages for two ranks.
  Algorithm between_two = algorithm;
};

absl::Span<const Way> Ways();
// Returns null if there is none.
const Way* FindWay(Collective collective, Algorithm algorithm);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_WAYS_H_
