// SPDX-License-Identifier: Apache-2.0
//
// NVML: NCCL reads the GPUs' places in the PCI tree and their links.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/cuda/device.h"

using namespace railhead::stock;  // NOLINT: the functions below have CUDA's names

namespace {

enum NvmlError : int { kNvmlNotSupported = 3, kNvmlNotFound = 6 };

// The address of an element is a device's handle.
char devices[kDevices];

unsigned IndexOf(const void* device) {
  return static_cast<unsigned>(static_cast<const char*>(device) - devices);
}

// nvmlPciInfo_t.
struct PciInfo {
  char short_id[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};

}  // namespace

// NCCL opens the libraries of NVML and of the driver: both are this program.
CUDA_API void* dlopen(const char* file, int flags) {
  static const auto next =
      reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  if (file != nullptr && (std::strncmp(file, "libcuda.so", 10) == 0 ||
                          std::strncmp(file, "libnvidia-ml.so", 15) == 0)) {
    file = nullptr;
  }
  return next(file, flags);
}

CUDA_API int nvmlInit_v2() { return kSuccess; }
CUDA_API int nvmlInit() { return kSuccess; }
CUDA_API int nvmlShutdown() { return kSuccess; }
CUDA_API const char* nvmlErrorString(int /*error*/) { return "NVML of an emulated GPU"; }
CUDA_API int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kDevices;
  return kSuccess;
}
CUDA_API int nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }
CUDA_API int nvmlDeviceGetHandleByIndex(unsigned index, void** device) {
  *device = &devices[index];
  return kSuccess;
}
CUDA_API int nvmlDeviceGetHandleByPciBusId(const char* id, void** device) {
  unsigned domain = 0, bus = 0;
  if (std::sscanf(id, "%x:%x:", &domain, &bus) != 2 || bus < kFirstPciBus ||
      bus >= kFirstPciBus + kDevices) {
    return kNvmlNotFound;
  }
  return nvmlDeviceGetHandleByIndex(bus - kFirstPciBus, device);
}
CUDA_API int nvmlDeviceGetIndex(void* device, unsigned* index) {
  *index = IndexOf(device);
  return kSuccess;
}
CUDA_API int nvmlDeviceGetCudaComputeCapability(void* /*device*/, int* major, int* minor) {
  *major = kCapabilityMajor;
  *minor = kCapabilityMinor;
  return kSuccess;
}
CUDA_API int nvmlDeviceGetP2PStatus(void* /*device*/, void* /*peer*/, int /*index*/, int* status) {
  *status = 0;
  return kSuccess;
}
CUDA_API int nvmlDeviceGetNvLinkCapability(void* /*device*/, unsigned /*link*/, int /*capability*/,
                                           unsigned* /*value*/) {
  return kNvmlNotSupported;
}
CUDA_API int nvmlDeviceGetFieldValues(void* /*device*/, int /*count*/, void* /*values*/) {
  return kNvmlNotSupported;
}
CUDA_API int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  const unsigned bus = kFirstPciBus + IndexOf(device);
  *info = {{}, 0, bus, 0, 0x233010de, 0x000010de, {}};
  std::snprintf(info->short_id, sizeof info->short_id, "0000:%02X:00.0", bus);
  std::snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", bus);
  return kSuccess;
}
CUDA_API int nvmlDeviceGetCurrPcieLinkGeneration(void* /*device*/, unsigned* generation) {
  *generation = 5;
  return kSuccess;
}
CUDA_API int nvmlDeviceGetCurrPcieLinkWidth(void* /*device*/, unsigned* lanes) {
  *lanes = 16;
  return kSuccess;
}
CUDA_API int nvmlDeviceGetPcieLinkMaxSpeed(void* /*device*/, int* speed) {
  *speed = 32000;
  return kSuccess;
}
