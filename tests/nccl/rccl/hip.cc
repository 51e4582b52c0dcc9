// SPDX-License-Identifier: Apache-2.0
//
// The functions of the HIP runtime that RCCL calls (libamdhip64.so.5), over the emulated GPUs of
// tests/nccl/stock. Declarations are our own, from AMD's public documentation.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "tests/nccl/rccl/kernel.h"
#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/cuda/device.h"
#include "tests/nccl/stock/cuda/memory.h"
#include "tests/nccl/stock/cuda/stream.h"

using namespace railhead::stock;  // NOLINT: the functions below have HIP's names

namespace {

constexpr int kWarpThreads = 64;
constexpr int kGcnArch = 908;

struct Grid {
  unsigned x, y, z;
};

// hipDeviceProp_t, until the last field that RCCL reads.
struct Properties {
  char name[256];
  size_t memory_bytes, shared_bytes;
  int registers, warp_threads, block_threads, block_sizes[3], grid_sizes[3];
  int clock_khz, memory_clock_khz, memory_bits;
  size_t constant_bytes;
  int major, minor, processors, cache_bytes, processor_threads, compute_mode, clock;
  unsigned features;
  int concurrent, pci_domain, pci_bus, pci_device;
  size_t processor_shared_bytes;
  int many_gpus, maps_host, gcn_arch;
  char gcn_arch_name[256];
};

// hipPointerAttribute_t.
struct PointerAttributes {
  int type;  // 0 host, 1 device
  int device;
  void *device_pointer, *host_pointer;
  int managed;
  unsigned flags;
};

int Launch(void** arguments, void* stream) {
  const KernelArguments copy = {*static_cast<const char**>(arguments[0]),
                                *static_cast<uint64_t*>(arguments[1]),
                                *static_cast<const char**>(arguments[2])};
  Stream::Of(stream).Push([copy] { RunRcclKernel(copy); });
  return kSuccess;
}

}  // namespace

// Functions of the emulation, which have the same arguments and errors in HIP.
extern "C" {
int cudaEventCreateWithFlags(void** event, unsigned flags);
int cudaEventDestroy(void* event);
int cudaEventQuery(void* event);
int cudaEventRecord(void* event, void* stream);
int cudaGetDevice(int* device);
int cudaSetDevice(int device);
int cudaDeviceGetPCIBusId(char* id, int bytes, int device);
int cudaHostRegister(void* pointer, size_t bytes, unsigned flags);
int cudaMemcpy(void* to, const void* from, size_t bytes, int kind);
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream);
int cudaMemsetAsync(void* to, int value, size_t bytes, void* stream);
int cudaStreamCreateWithFlags(void** stream, unsigned flags);
int cudaStreamDestroy(void* stream);
int cudaStreamSynchronize(void* stream);
int cudaStreamWaitEvent(void* stream, void* event, unsigned flags);
int cudaThreadExchangeStreamCaptureMode(int* mode);
const char* cudaGetErrorString(int error);
}

CUDA_API int __hipPopCallConfiguration(Grid* grid, Grid* block, size_t* bytes, void** stream) {
  *grid = *block = {1, 1, 1};
  *bytes = 0;
  *stream = nullptr;
  return kSuccess;
}
CUDA_API void** __hipRegisterFatBinary(const void* /*binary*/) {
  static void* handle = nullptr;
  return &handle;
}
CUDA_API void __hipRegisterFunction(void** /*binary*/, const void* /*stub*/, char* /*name*/,
                                    const char* /*device_name*/, unsigned /*threads*/,
                                    void* /*thread*/, void* /*block*/, void* /*block_size*/,
                                    void* /*grid_size*/, int* /*warp*/) {}
CUDA_API void __hipUnregisterFatBinary(void** /*binary*/) {}

CUDA_API int hipGetDeviceCount(int* count) {
  *count = kDevices;
  return kSuccess;
}
CUDA_API int hipGetDevice(int* device) { return cudaGetDevice(device); }
CUDA_API int hipSetDevice(int device) { return cudaSetDevice(device); }
CUDA_API int hipGetLastError() { return kSuccess; }
CUDA_API const char* hipGetErrorString(int error) { return cudaGetErrorString(error); }
CUDA_API int hipDeviceCanAccessPeer(int* can, int /*device*/, int /*peer*/) {
  *can = 0;
  return kSuccess;
}
CUDA_API int hipDeviceEnablePeerAccess(int /*peer*/, unsigned /*flags*/) { return kNotSupported; }
CUDA_API int hipDeviceGetPCIBusId(char* id, int bytes, int device) {
  return cudaDeviceGetPCIBusId(id, bytes, device);
}
CUDA_API int hipDeviceGetByPCIBusId(int* device, const char* id) {
  unsigned domain = 0, bus = 0;
  if (std::sscanf(id, "%x:%x:", &domain, &bus) != 2 || bus < kFirstPciBus ||
      bus >= kFirstPciBus + kDevices) {
    return kInvalidDevice;
  }
  *device = static_cast<int>(bus - kFirstPciBus);
  return kSuccess;
}
CUDA_API int hipDeviceGetAttribute(int* value, int attribute, int /*device*/) {
  switch (attribute) {
    case 23:  // compute capability, major
      *value = kCapabilityMajor;
      break;
    case 87:
      *value = kWarpThreads;
      break;
    default:  // a feature that these devices lack
      *value = 0;
  }
  return kSuccess;
}
CUDA_API int hipGetDeviceProperties(Properties* properties, int device) {
  std::strcpy(properties->name, "Emulated GPU");
  properties->memory_bytes = size_t{80} << 30U;
  properties->warp_threads = kWarpThreads;
  properties->major = kCapabilityMajor;
  properties->minor = 0;
  properties->features = 0;
  properties->pci_domain = properties->pci_device = 0;
  properties->pci_bus = static_cast<int>(kFirstPciBus) + device;
  properties->gcn_arch = kGcnArch;
  std::strcpy(properties->gcn_arch_name, "gfx908");
  return kSuccess;
}

CUDA_API int hipMalloc(void** pointer, size_t bytes) {
  return Allocate(pointer, bytes, Place::kDevice);
}
CUDA_API int hipExtMallocWithFlags(void** pointer, size_t bytes, unsigned /*flags*/) {
  return Allocate(pointer, bytes, Place::kDevice);
}
CUDA_API int hipFree(void* pointer) { return Free(pointer); }
CUDA_API int hipHostMalloc(void** pointer, size_t bytes, unsigned /*flags*/) {
  return Allocate(pointer, bytes, Place::kHost);
}
CUDA_API int hipHostFree(void* pointer) { return Free(pointer); }
CUDA_API int hipHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return cudaHostRegister(pointer, bytes, flags);
}
CUDA_API int hipHostUnregister(void* pointer) { return Free(pointer); }
CUDA_API int hipHostGetDevicePointer(void** device, void* host, unsigned /*flags*/) {
  *device = host;
  return kSuccess;
}
CUDA_API int hipPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  const std::optional<Allocation> found = AllocationOf(pointer);
  if (!found) return kInvalidValue;
  auto* const here = const_cast<void*>(pointer);
  *attributes = {found->place == Place::kHost ? 0 : 1, found->device, here, nullptr, 0, 0};
  return kSuccess;
}
CUDA_API int hipMemcpy(void* to, const void* from, size_t bytes, int kind) {
  return cudaMemcpy(to, from, bytes, kind);
}
CUDA_API int hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  return cudaMemcpyAsync(to, from, bytes, kind, stream);
}
CUDA_API int hipMemsetAsync(void* to, int value, size_t bytes, void* stream) {
  return cudaMemsetAsync(to, value, bytes, stream);
}
// All ranks are hosts of their own.
CUDA_API int hipIpcGetMemHandle(void* /*handle*/, void* /*pointer*/) { return kNotSupported; }
struct IpcHandle {
  char bytes[64];
};
CUDA_API int hipIpcOpenMemHandle(void** /*pointer*/, IpcHandle /*handle*/, unsigned /*flags*/) {
  return kNotSupported;
}
CUDA_API int hipIpcCloseMemHandle(void* /*pointer*/) { return kNotSupported; }

CUDA_API int hipEventCreate(void** event) { return cudaEventCreateWithFlags(event, 0); }
CUDA_API int hipEventCreateWithFlags(void** event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}
CUDA_API int hipEventDestroy(void* event) { return cudaEventDestroy(event); }
CUDA_API int hipEventQuery(void* event) { return cudaEventQuery(event); }
CUDA_API int hipEventRecord(void* event, void* stream) { return cudaEventRecord(event, stream); }
CUDA_API int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  return cudaStreamCreateWithFlags(stream, flags);
}
CUDA_API int hipStreamDestroy(void* stream) { return cudaStreamDestroy(stream); }
CUDA_API int hipStreamSynchronize(void* stream) { return cudaStreamSynchronize(stream); }
CUDA_API int hipStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return cudaStreamWaitEvent(stream, event, flags);
}
CUDA_API int hipStreamAddCallback(void* stream, void (*callback)(void*, int, void*), void* argument,
                                  unsigned /*flags*/) {
  Stream::Of(stream).Push([=] { callback(stream, kSuccess, argument); });
  return kSuccess;
}
CUDA_API int hipThreadExchangeStreamCaptureMode(int* mode) {
  return cudaThreadExchangeStreamCaptureMode(mode);
}

CUDA_API int hipFuncGetAttributes(void* /*zeros*/, const void* /*function*/) { return kSuccess; }
CUDA_API int hipFuncSetAttribute(const void* /*function*/, int /*attribute*/, int /*value*/) {
  return kSuccess;
}
CUDA_API int hipLaunchKernel(const void* /*function*/, Grid /*grid*/, Grid /*block*/,
                             void** arguments, size_t /*shared*/, void* stream) {
  return Launch(arguments, stream);
}
CUDA_API int hipExtLaunchKernel(const void* /*function*/, Grid /*grid*/, Grid /*block*/,
                                void** arguments, size_t /*shared*/, void* stream, void* begins,
                                void* ends, int /*flags*/) {
  if (begins != nullptr) cudaEventRecord(begins, stream);
  const int launched = Launch(arguments, stream);
  if (ends != nullptr) cudaEventRecord(ends, stream);
  return launched;
}
