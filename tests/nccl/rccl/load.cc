// SPDX-License-Identifier: Apache-2.0
//
// RCCL is linked dynamically to its runtime, so that it is only to be loaded.
#include <dlfcn.h>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/redirect.h"

namespace railhead::stock {

void* LoadNccl(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) GiveUp("%s", dlerror());
  return handle;
}

}  // namespace railhead::stock
