// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_SHM_STORES_H_
#define RAILHEAD_RUNTIME_SHM_STORES_H_

#include <cstddef>

#include "runtime/reduce/reduce.h"

namespace railhead::shm {

// How a collective writes its outputs that reads and writes so many bytes in all ranks' buffers
// together: past the caches when the last of them would not hold all these. What stays there is
// written and read twice as fast as memory.
reduce::Stores StoresFor(size_t bytes);

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_STORES_H_
