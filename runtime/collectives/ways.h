// SPDX-License-Identifier: Apache-2.0
//
// Table of algorithms: for each collective over messages, its algorithms with name, function, cost
// and memory. Used by the tuner, the communicator, RAILHEAD_ALGO and --explain. To add an
// algorithm, add an entry.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_WAYS_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_WAYS_H_

#include <cstddef>
#include <variant>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/collective.h"
#include "runtime/collectives/messenger.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Signatures by collective; the algorithms' headers document them.
using AllReduceFunction = absl::Status (*)(Messenger& messenger, int rank, int world_size,
                                           const reduce::Reduction& reduction,
                                           const std::byte* send, std::byte* receive, size_t count);
using ReduceFunction = absl::Status (*)(Messenger& messenger, int rank, int world_size, int root,
                                        const reduce::Reduction& reduction, const std::byte* send,
                                        std::byte* receive, size_t count);
using AllGatherFunction = absl::Status (*)(Messenger& messenger, int rank, int world_size,
                                           const std::byte* send, std::byte* receive,
                                           const Parts& parts);
using ReduceScatterFunction = absl::Status (*)(Messenger& messenger, int rank, int world_size,
                                               const reduce::Reduction& reduction,
                                               const std::byte* send, std::byte* receive,
                                               const Parts& parts);
// Broadcast, gather and scatter.
using RootedFunction = absl::Status (*)(Messenger& messenger, int rank, int world_size, int root,
                                        const std::byte* send, std::byte* receive, size_t bytes);
using AllToAllFunction = absl::Status (*)(Messenger& messenger, int rank, const std::byte* send,
                                          const Parts& send_parts, std::byte* receive,
                                          const Parts& receive_parts);

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
  // Empty for the hierarchy: shared memory inside places, and another algorithm between them
  // (hierarchy.h).
  std::variant<std::monostate, AllReduceFunction, ReduceFunction, AllGatherFunction,
               ReduceScatterFunction, RootedFunction, AllToAllFunction>
      function;
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

// Returns the function of an entry, which must exist and have this type.
template <class Function>
Function FunctionOf(Collective collective, Algorithm algorithm) {
  return *std::get_if<Function>(&FindWay(collective, algorithm)->function);
}

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_WAYS_H_
