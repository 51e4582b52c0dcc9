// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/cuda/device.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/nccl/stock/cuda/api.h"

namespace railhead::stock {
namespace {

thread_local int current_device = 0;

// The beginning of cudaDeviceProp: the fields that NCCL reads, at their public offsets.
struct Properties {
  char name[256];
  char ids[32];
  size_t memory_bytes;
  char limits[64];
  int major, minor;
};
static_assert(offsetof(Properties, memory_bytes) == 288 && offsetof(Properties, major) == 360);

int FillProperties(Properties* properties) {
  *properties = {"Emulated GPU", {}, size_t{80} << 30U, {}, kCapabilityMajor, kCapabilityMinor};
  return kSuccess;
}

}  // namespace

int CurrentDevice() { return current_device; }
void SetCurrentDevice(int device) { current_device = device; }

int DeviceAttribute(int attribute) {
  switch (attribute) {
    case 1:  // threads of a block
      return 1024;
    case 8:  // shared memory of a block
      return 48 << 10;
    case 10:  // threads of a warp
      return 32;
    case 16:  // multiprocessors
      return 132;
    case 41:  // unified addresses
      return 1;
    case 75:
      return kCapabilityMajor;
    case 76:
      return kCapabilityMinor;
    case 97:  // shared memory of a block that asks for it
      return 227 << 10;
    case 116:  // GPUDirect
      return std::getenv("EMULATED_GPUDIRECT") == nullptr ? 0 : 1;
    default:  // a feature that these devices lack; NUMA node 0
      return 0;
  }
}

}  // namespace railhead::stock

using namespace railhead::stock;  // NOLINT: the functions below have CUDA's names

CUDA_API int cudaGetDeviceCount(int* count) {
  *count = kDevices;
  return kSuccess;
}
CUDA_API int cudaGetDevice(int* device) {
  *device = CurrentDevice();
  return kSuccess;
}
CUDA_API int cudaSetDevice(int device) {
  if (device < 0 || device >= kDevices) return kInvalidDevice;
  SetCurrentDevice(device);
  return kSuccess;
}
CUDA_API int cudaDriverGetVersion(int* version) {
  *version = kDriverVersion;
  return kSuccess;
}
CUDA_API int cudaRuntimeGetVersion(int* version) {
  *version = 12090;
  return kSuccess;
}
CUDA_API int cudaGetLastError() { return kSuccess; }
CUDA_API int cudaPeekAtLastError() { return kSuccess; }
CUDA_API const char* cudaGetErrorString(int error) {
  static thread_local char text[40];
  std::snprintf(text, sizeof text, "error %d of an emulated GPU", error);
  return text;
}
CUDA_API const char* cudaGetErrorName(int error) { return cudaGetErrorString(error); }
CUDA_API int cudaDeviceSetLimit(int /*limit*/, size_t /*value*/) { return kSuccess; }
CUDA_API int cudaDeviceCanAccessPeer(int* can, int /*device*/, int /*peer*/) {
  *can = 1;
  return kSuccess;
}
CUDA_API int cudaDeviceEnablePeerAccess(int /*peer*/, unsigned /*flags*/) { return kSuccess; }
CUDA_API int cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  std::snprintf(id, static_cast<size_t>(bytes), "0000:%02X:00.0",
                kFirstPciBus + static_cast<unsigned>(device));
  return kSuccess;
}
CUDA_API int cudaDeviceGetAttribute(int* value, int attribute, int /*device*/) {
  *value = DeviceAttribute(attribute);
  return kSuccess;
}
// Of CUDA 12 and 11.
CUDA_API int cudaGetDeviceProperties_v2(void* properties, int /*device*/) {
  return FillProperties(static_cast<Properties*>(properties));
}
CUDA_API int cudaGetDeviceProperties(void* properties, int /*device*/) {
  return FillProperties(static_cast<Properties*>(properties));
}
