// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_RING_BARRIER_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_RING_BARRIER_H_

#include "absl/status/status.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// Returns when all ranks have called it: an all-reduce of one byte, whose result nobody can have
// without something from everybody.
absl::Status RingBarrier(Messenger& messenger, int rank, int world_size);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_RING_BARRIER_H_
