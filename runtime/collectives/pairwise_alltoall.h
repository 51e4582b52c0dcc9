// SPDX-License-Identifier: Apache-2.0
//
// All-to-all in n-1 steps: in step s every rank sends to the rank s after it and receives from the
// rank s before it. So no rank receives from many at once, and every byte is sent once.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_PAIRWISE_ALLTOALL_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_PAIRWISE_ALLTOALL_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/base/parts.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// Part r of `send` goes to rank r, into the part of this rank; parts are in bytes and of equal size
// on both sides. The buffers do not overlap. On an error the contents of `receive` are undefined.
absl::Status PairwiseAllToAll(Messenger& messenger, int rank, const std::byte* send,
                              const Parts& send_parts, std::byte* receive,
                              const Parts& receive_parts);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_PAIRWISE_ALLTOALL_H_
