// SPDX-License-Identifier: Apache-2.0
//
// Choice between cached and streaming stores. Used by all collectives in shared memory.
#ifndef RAILHEAD_RUNTIME_SHM_STORES_H_
#define RAILHEAD_RUNTIME_SHM_STORES_H_

#include <cstddef>

#include "runtime/reduce/reduce.h"

namespace railhead::shm {

// Returns how a collective that accesses `bytes` in all ranks' buffers together writes its outputs:
// past the caches if the last-level cache cannot hold them. Cached data is written and read twice
// as fast as memory.
reduce::Stores StoresFor(size_t bytes);

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_STORES_H_
