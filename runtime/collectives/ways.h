// SPDX-License-Identifier: Apache-2.0
//
// The one list of algorithms: for each way to do a collective over messages its name, its function,
// what it costs and the memory that it takes. The tuner chooses from it, the communicator calls
// what it holds, and RAILHEAD_ALGO and --explain name what is in it. To add a way, add an entry.
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

// What the functions of a collective look like; their headers say what they do.
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
// Of a broadcast, gather or scatter.
using RootedFunction = absl::Status (*)(Messenger& messenger, int rank, int world_size, int root,
                                        const std::byte* send, std::byte* receive, size_t bytes);
using AllToAllFunction = absl::Status (*)(Messenger& messenger, int rank, const std::byte* send,
                                          const Parts& send_parts, std::byte* receive,
                                          const Parts& receive_parts);

// The terms of a cost, for n ranks and the bytes of the larger of a rank's two buffers.
struct Terms {
  // A message takes `alpha` seconds and `beta` for each byte, and to reduce a byte takes `gamma`.
  Terms(size_t bytes, int ranks, double alpha, double beta, double gamma);

  double n;
  double log;       // steps of a tree or an exchange
  double odd;       // 1 where some ranks are guests of others
  double a;         // alpha
  double whole;     // to send all bytes
  double far;       // the same, while all ranks send to others that are not beside them
  double work;      // to reduce all bytes
  double segments;  // of what travels in a row through all ranks
};

// With how many others a rank exchanges messages.
enum class Peers { kFew, kAll };

struct Way {
  Collective collective;
  Algorithm algorithm;
  // None: what ranks that share memory do there, and another way among the others (hierarchy.h).
  std::variant<std::monostate, AllReduceFunction, ReduceFunction, AllGatherFunction,
               ReduceScatterFunction, RootedFunction, AllToAllFunction>
      function;
  double (*seconds)(const Terms& terms);
  // Memory that a rank takes besides its buffers; a few MiB count as nothing.
  size_t (*memory)(size_t bytes, int ranks);
  Peers peers = Peers::kFew;
  // What comes down to the same messages where there are two ranks.
  Algorithm between_two = algorithm;
};

absl::Span<const Way> Ways();
// Null if there is none.
const Way* FindWay(Collective collective, Algorithm algorithm);

// The function of a way that there is, and that has one of this type.
template <class Function>
Function FunctionOf(Collective collective, Algorithm algorithm) {
  return *std::get_if<Function>(&FindWay(collective, algorithm)->function);
}

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_WAYS_H_
