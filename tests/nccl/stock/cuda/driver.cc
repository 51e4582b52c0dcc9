// SPDX-License-Identifier: Apache-2.0
//
// Functions of the driver, which NCCL asks the runtime for by name. It copes with those that are
// missing.
#include <dlfcn.h>

#include <cstddef>
#include <cstring>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/cuda/device.h"

using namespace railhead::stock;  // NOLINT: the functions below have CUDA's names

namespace {

// The address of an element is a device's context.
char contexts[kDevices];

int Find(const char* name, void** function, int* status) {
  *function = dlsym(RTLD_DEFAULT, name);
  if (status != nullptr) *status = *function == nullptr ? 1 : 0;
  return *function == nullptr ? kNotFound : kSuccess;
}

}  // namespace

// NOLINTNEXTLINE(google-runtime-int): CUDA's type
CUDA_API int cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                     int* status) {
  return Find(name, function, status);
}
// NOLINTNEXTLINE(google-runtime-int): CUDA's type
CUDA_API int cudaGetDriverEntryPointByVersion(const char* name, void** function,
                                              unsigned /*version*/, unsigned long long,
                                              int* status) {
  return Find(name, function, status);
}

CUDA_API const char* cudaGetErrorString(int error);
CUDA_API int cuGetErrorString(int error, const char** text) {
  *text = cudaGetErrorString(error);
  return kSuccess;
}
CUDA_API int cuGetErrorName(int error, const char** text) { return cuGetErrorString(error, text); }
CUDA_API int cuInit(unsigned /*flags*/) { return kSuccess; }
CUDA_API int cuDriverGetVersion(int* version) {
  *version = kDriverVersion;
  return kSuccess;
}
CUDA_API int cuDeviceGet(int* device, int number) {
  *device = number;
  return kSuccess;
}
CUDA_API int cuDeviceGetCount(int* count) {
  *count = kDevices;
  return kSuccess;
}
CUDA_API int cuDeviceGetAttribute(int* value, int attribute, int /*device*/) {
  *value = DeviceAttribute(attribute);
  return kSuccess;
}
CUDA_API int cuDeviceGetUuid(unsigned char* uuid, int device) {
  std::memset(uuid, 0x5a, 15);
  uuid[15] = static_cast<unsigned char>(device);
  return kSuccess;
}
CUDA_API int cuCtxGetCurrent(void** context) {
  *context = &contexts[CurrentDevice()];
  return kSuccess;
}
CUDA_API int cuCtxSetCurrent(void* context) {
  if (context != nullptr)
    SetCurrentDevice(static_cast<int>(static_cast<char*>(context) - contexts));
  return kSuccess;
}
CUDA_API int cuCtxGetDevice(int* device) {
  *device = CurrentDevice();
  return kSuccess;
}
CUDA_API int cuCtxCreate(void** context, unsigned /*flags*/, int device) {
  *context = &contexts[device];
  return kSuccess;
}
CUDA_API int cuCtxDestroy(void* /*context*/) { return kSuccess; }
