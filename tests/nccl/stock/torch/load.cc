// SPDX-License-Identifier: Apache-2.0
//
// What torch wants of CUDA beside the functions that NCCL calls: enough to make, copy and fill
// tensors, and for its NCCL backend; no kernels. This folder and those of the emulation are a
// library for LD_PRELOAD, so that its functions precede those of other libraries of CUDA.
#include <cstddef>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/redirect.h"

using namespace railhead::stock;  // NOLINT: the functions below have CUDA's names

// Loads NCCL, with its CUDA runtime redirected. To be called before torch is loaded: torch then
// uses this libnccl.so.2, whatever else it would find.
CUDA_API void LoadStockNccl(const char* path) { LoadNccl(path); }

CUDA_API int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}
CUDA_API int cudaMemGetInfo(size_t* free, size_t* total) {
  *total = size_t{80} << 30U;
  *free = *total / 2;
  return kSuccess;
}
CUDA_API int cudaEventElapsedTime(float* milliseconds, void* /*from*/, void* /*to*/) {
  *milliseconds = 0.001F;
  return kSuccess;
}
CUDA_API int cuDevicePrimaryCtxGetState(int /*device*/, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return kSuccess;
}
