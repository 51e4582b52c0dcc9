// SPDX-License-Identifier: Apache-2.0
//
// The functions of the CUDA driver (libcuda) that are used here, as a table.
//
// Nothing is needed of CUDA to build, and nothing here loads it, initializes it or makes a context:
// device memory can only be where the program itself has loaded the driver, so LoadedCuda looks for
// one that is there. Tests put GPUs of their own behind the same table (fake_cuda.h).
//
// Source of names, numbers and signatures: NVIDIA's reference "CUDA Driver API", the groups Unified
// Addressing, Memory Management, Context and Primary Context Management, Device Management.
#ifndef RAILHEAD_RUNTIME_DEVICE_CUDA_API_H_
#define RAILHEAD_RUNTIME_DEVICE_CUDA_API_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/types/span.h"

namespace railhead::device {

// Of the driver's enumerations those values that are used.
inline constexpr int kCudaSuccess = 0;
inline constexpr int kCudaInvalidValue = 1;
inline constexpr int kCudaOutOfMemory = 2;
inline constexpr int kCudaNotInitialized = 3;
inline constexpr int kCudaDeinitialized = 4;
inline constexpr int kCudaStubLibrary = 34;
inline constexpr int kCudaInvalidContext = 201;
inline constexpr int kCudaNotSupported = 801;

// CU_POINTER_ATTRIBUTE_...
inline constexpr int kPointerContext = 1;        // CUcontext
inline constexpr int kPointerMemoryType = 2;     // unsigned; CU_MEMORYTYPE_DEVICE is 2
inline constexpr int kPointerSyncMemops = 6;     // unsigned: copies return when they are done
inline constexpr int kPointerBufferId = 7;       // uint64: of the allocation, never used again
inline constexpr int kPointerIsManaged = 8;      // unsigned
inline constexpr int kPointerDeviceOrdinal = 9;  // int
inline constexpr unsigned kMemoryOfDevice = 2;

// CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
inline constexpr int kDeviceDmaBufSupported = 124;
// CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
inline constexpr int kRangeHandleDmaBuf = 1;
// CU_MEMHOSTALLOC_PORTABLE: pinned for all contexts.
inline constexpr unsigned kHostPortable = 1;

using CudaContext = struct CudaContextOpaque*;

// Each function behaves as the driver's function of the same name (cu...), and returns its
// CUresult. Any thread.
class CudaApi {
 public:
  virtual ~CudaApi() = default;

  // A short text for a CUresult. Never null.
  virtual const char* ErrorText(int result) const = 0;

  // `values[i]` is where the attribute `attributes[i]` goes: zero, if the driver does not know the
  // address.
  virtual int PointerGetAttributes(absl::Span<int> attributes, absl::Span<void*> values,
                                   uint64_t address) const = 0;
  virtual int PointerSetAttribute(const void* value, int attribute, uint64_t address) const = 0;

  virtual int DeviceGet(int* device, int ordinal) const = 0;
  virtual int DeviceGetAttribute(int* value, int attribute, int device) const = 0;
  virtual int DevicePrimaryCtxRetain(CudaContext* context, int device) const = 0;
  virtual int DevicePrimaryCtxRelease(int device) const = 0;
  virtual int CtxPushCurrent(CudaContext context) const = 0;
  virtual int CtxPopCurrent(CudaContext* context) const = 0;

  virtual int MemcpyDtoH(void* to, uint64_t from, size_t bytes) const = 0;
  virtual int MemcpyHtoD(uint64_t to, const void* from, size_t bytes) const = 0;
  virtual int MemcpyDtoD(uint64_t to, uint64_t from, size_t bytes) const = 0;
  // Of the default stream, which the copies above are on.
  virtual int StreamSynchronize() const = 0;

  virtual int MemHostAlloc(void** memory, size_t bytes, unsigned flags) const = 0;
  virtual int MemFreeHost(void* memory) const = 0;
  // NotSupported where the driver is older than CUDA 11.7. Address and size are whole pages.
  virtual int MemGetHandleForAddressRange(void* handle, uint64_t address, size_t bytes, int type,
                                          uint64_t flags) const = 0;
};

// Where the driver comes from.
class CudaSource {
 public:
  virtual ~CudaSource() = default;
  // Null as long as there is none in this process. Asked before every call of the C API. Any
  // thread; what it returns lives as long as this.
  virtual const CudaApi* Loaded() = 0;
};

// libcuda.so.1, once the program has loaded it, by whatever way.
class LoadedCuda final : public CudaSource {
 public:
  LoadedCuda();
  ~LoadedCuda() override;
  const CudaApi* Loaded() override {
    const CudaApi* const api = api_.load(std::memory_order_acquire);
    return api != nullptr ? api : Look();
  }

 private:
  const CudaApi* Look();

  std::atomic<const CudaApi*> api_{nullptr};
  // How many libraries had ever been loaded when it was looked for last.
  std::atomic<uint64_t> looked_at_{0};
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<const CudaApi> owned_;
};

}  // namespace railhead::device

#endif  // RAILHEAD_RUNTIME_DEVICE_CUDA_API_H_
