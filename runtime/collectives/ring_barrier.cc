// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/ring_barrier.h"

#include "runtime/collectives/ring_allreduce.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

absl::Status RingBarrier(Messenger& messenger, int rank, int world_size) {
  std::byte token{1};
  return RingAllReduce(messenger, rank, world_size, {rhUint8, rhMax, 1, {}}, &token, &token, 1);
}

}  // namespace railhead::collectives
