// SPDX-License-Identifier: Apache-2.0
//
// Gather and scatter by direct messages between the root and each rank. The root's links carry
// every byte once, the minimum; the root's number of messages grows with the number of ranks.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_DIRECT_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_DIRECT_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// Block r (of `bytes`) of the root's `receive` gets what rank r sends. `receive` is used on the
// root only, where `send` may be its own block (in place).
absl::Status DirectGather(Messenger& messenger, int rank, int world_size, int root,
                          const std::byte* send, std::byte* receive, size_t bytes);

// Rank r gets block r (of `bytes`) of the root's `send`. `send` is used on the root only, where
// `receive` may be its own block (in place).
absl::Status DirectScatter(Messenger& messenger, int rank, int world_size, int root,
                           const std::byte* send, std::byte* receive, size_t bytes);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_DIRECT_H_
