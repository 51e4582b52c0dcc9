// SPDX-License-Identifier: Apache-2.0
//
// Between one rank and each of the others, without a way round: gather to the root, and scatter
// from it. The root's links carry every byte once, which nothing can better; what grows with the
// number of ranks is the root's messages.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_DIRECT_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_DIRECT_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// Block r (of `bytes`) of the root's `receive` becomes what rank r sends. `receive` is used by the
// root alone; there `send` may be its own block (in place).
absl::Status DirectGather(Messenger& messenger, int rank, int world_size, int root,
                          const std::byte* send, std::byte* receive, size_t bytes);

// Block r (of `bytes`) of the root's `send` goes to rank r. `send` is used by the root alone; there
// `receive` may be its own block (in place).
absl::Status DirectScatter(Messenger& messenger, int rank, int world_size, int root,
                           const std::byte* send, std::byte* receive, size_t bytes);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_DIRECT_H_
