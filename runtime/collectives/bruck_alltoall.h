// SPDX-License-Identifier: Apache-2.0
//
// All-to-all of small blocks in log2(n) steps (J. Bruck et al., "Efficient algorithms for
// all-to-all communications in multiport message-passing systems", 1997): a block that has to go d
// ranks further takes the steps of d's binary digits, together with all others that take them.
// Every block is sent up to log2(n) times, in fewer messages.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_BRUCK_ALLTOALL_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_BRUCK_ALLTOALL_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// Like PairwiseAllToAll (pairwise_alltoall.h), for equal parts. Needs temporary memory of twice
// `send`.
absl::Status BruckAllToAll(Messenger& messenger, int rank, const std::byte* send,
                           const Parts& send_parts, std::byte* receive, const Parts& receive_parts);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_BRUCK_ALLTOALL_H_
