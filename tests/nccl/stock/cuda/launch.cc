// SPDX-License-Identifier: Apache-2.0
//
// Launches of kernels. A function is the address of its host stub, which has the kernel's name.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/cuda/event.h"
#include "tests/nccl/stock/cuda/stream.h"
#include "tests/nccl/stock/kernels/run.h"
#include "tests/nccl/stock/redirect.h"

namespace {

using namespace railhead::stock;  // NOLINT: the functions below have CUDA's names

// The values of `extra`: pairs of a name and a pointer, and a null.
constexpr uintptr_t kArguments = 1, kArgumentBytes = 2;

int Launch(void* stream, void* function, void** extra) {
  const char* arguments = nullptr;
  size_t bytes = 0;
  for (void** pair = extra; pair != nullptr && *pair != nullptr; pair += 2) {
    const auto name = reinterpret_cast<uintptr_t>(pair[0]);
    if (name == kArguments) arguments = static_cast<const char*>(pair[1]);
    if (name == kArgumentBytes) bytes = *static_cast<size_t*>(pair[1]);
  }
  if (arguments == nullptr) return kNotSupported;
  // NCCL frees the arguments after the call. The copy is aligned as malloc's memory is, to 16
  // bytes.
  auto copy = std::make_shared<std::vector<char>>(arguments, arguments + bytes);
  Stream::Of(stream).Push([copy, name = KernelName(function)] { RunKernel(name, copy->data()); });
  return kSuccess;
}

// CUlaunchConfig and its attributes.
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  struct LaunchAttribute* attributes;
  unsigned count;
};
struct LaunchAttribute {
  int id;
  int reserved;
  union {
    void* event;
    char bytes[64];
  };
};
constexpr int kLaunchCompletionEvent = 12;

}  // namespace

CUDA_API int cudaFuncGetAttributes(void* /*zeros*/, const void* /*function*/) { return kSuccess; }
CUDA_API int cudaFuncSetAttribute(const void* /*function*/, int /*attribute*/, int /*value*/) {
  return kSuccess;
}
CUDA_API int cudaGetFuncBySymbol(void** function, const void* symbol) {
  *function = const_cast<void*>(symbol);
  return kSuccess;
}
CUDA_API int cuLaunchKernel(void* function, unsigned /*grid_x*/, unsigned /*grid_y*/,
                            unsigned /*grid_z*/, unsigned /*block_x*/, unsigned /*block_y*/,
                            unsigned /*block_z*/, unsigned /*shared_bytes*/, void* stream,
                            void** /*parameters*/, void** extra) {
  return Launch(stream, function, extra);
}
CUDA_API int cuLaunchKernelEx(const LaunchConfig* config, void* function, void** /*parameters*/,
                              void** extra) {
  const int launched = Launch(config->stream, function, extra);
  for (unsigned i = 0; i < config->count; ++i) {
    const LaunchAttribute& attribute = config->attributes[i];
    // A kernel has threads of its own, and so may begin at once.
    if (attribute.id == kLaunchCompletionEvent && attribute.event != nullptr) {
      MarkReached(attribute.event);
    }
  }
  return launched;
}
