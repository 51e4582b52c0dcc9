// SPDX-License-Identifier: Apache-2.0
//
// Table of the CUDA driver (libcuda) functions used here.
//
// The build needs no CUDA, and nothing loads or initializes it or creates a context: device memory
// exists only if the program has loaded the driver, so LoadedCuda finds the loaded one. Tests put
// fake GPUs behind the table (fake_cuda.h).
//
// Source of names, numbers and signatures: NVIDIA's reference "CUDA Driver API", the groups Unified
// Addressing, Memory Management, Context and Primary Context Management, Device Management, Stream
// Management.
#ifndef RAILHEAD_RUNTIME_DEVICE_CUDA_API_H_
#define RAILHEAD_RUNTIME_DEVICE_CUDA_API_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/types/span.h"

namespace railhead::device {

// Values of the driver's enumerations that are used.
inline constexpr int kCudaSuccess = 0;
inline constexpr int kCudaInvalidValue = 1;
inline constexpr int kCudaOutOfMemory = 2;
inline constexpr int kCudaNotInitialized = 3;
inline constexpr int kCudaDeinitialized = 4;
inline constexpr int kCudaStubLibrary = 34;
inline constexpr int kCudaInvalidContext = 201;
inline constexpr int kCudaNotSupported = 801;
inline constexpr int kCudaStreamCaptureUnsupported = 900;

// CU_POINTER_ATTRIBUTE_...
inline constexpr int kPointerContext = 1;        // CUcontext
inline constexpr int kPointerMemoryType = 2;     // unsigned; CU_MEMORYTYPE_DEVICE is 2
inline constexpr int kPointerSyncMemops = 6;     // unsigned: copies return when complete
inline constexpr int kPointerBufferId = 7;       // uint64: of the allocation, never reused
inline constexpr int kPointerIsManaged = 8;      // unsigned
inline constexpr int kPointerDeviceOrdinal = 9;  // int
inline constexpr unsigned kMemoryOfDevice = 2;

// CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
inline constexpr int kDeviceDmaBufSupported = 124;
// CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
inline constexpr int kRangeHandleDmaBuf = 1;
// CU_MEMHOSTALLOC_PORTABLE: pinned for all contexts.
inline constexpr unsigned kHostPortable = 1;
// CU_STREAM_CAPTURE_MODE_...: of a thread
inline constexpr int kCaptureModeGlobal = 0;   // the default
inline constexpr int kCaptureModeRelaxed = 2;  // captures of other threads prohibit nothing

using CudaContext = struct CudaContextOpaque*;

// Each function behaves as the driver's function of the same name (cu...) and returns its CUresult.
// Thread-safe.
class CudaApi {
 public:
  virtual ~CudaApi() = default;

  // Returns a short text for a CUresult. Never null.
  virtual const char* ErrorText(int result) const = 0;

  // Writes attribute `attributes[i]` to `values[i]`: zero if the driver does not know the address.
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
  // Synchronizes the default stream, which the copies above use.
  virtual int StreamSynchronize() const = 0;
  // Exchanges this thread's mode and `*mode`. NotSupported if the driver is older than CUDA 10.1.
  virtual int ThreadExchangeStreamCaptureMode(int* mode) const = 0;

  virtual int MemHostAlloc(void** memory, size_t bytes, unsigned flags) const = 0;
  virtual int MemFreeHost(void* memory) const = 0;
  // NotSupported if the driver is older than CUDA 11.7. Address and size are whole pages.
  virtual int MemGetHandleForAddressRange(void* handle, uint64_t address, size_t bytes, int type,
                                          uint64_t flags) const = 0;
};

// Source of the driver.
class CudaSource {
 public:
  virtual ~CudaSource() = default;
  // Returns null while this process has no driver. Called before every call of the C API.
  // Thread-safe; the result lives as long as this.
  virtual const CudaApi* Loaded() = 0;
};

// libcuda.so.1 after the program has loaded it in any way.
class LoadedCuda final : public CudaSource {
 public:
  // Ticks of the CPU's clock (base/clock.h) for which a search without result is valid: 20 us and
  // more. A program that begins to load the driver then has no memory of a GPU yet: initialising a
  // device takes milliseconds. A search takes as long as half a small collective.
  static constexpr uint64_t kTrustedTicks = 100'000;

  explicit LoadedCuda(uint64_t trusted_ticks = kTrustedTicks);
  ~LoadedCuda() override;
  const CudaApi* Loaded() override {
    const CudaApi* const api = api_.load(std::memory_order_acquire);
    return api != nullptr ? api : Look();
  }

 private:
  const CudaApi* Look();

  const uint64_t trusted_ticks_;
  std::atomic<const CudaApi*> api_{nullptr};
  std::atomic<uint64_t> searched_{0};  // ticks at the last search
  // Number of libraries ever loaded at the last search.
  std::atomic<uint64_t> looked_at_{0};
  std::mutex mutex_;  // guards all below
  std::unique_ptr<const CudaApi> owned_;
};

}  // namespace railhead::device

#endif  // RAILHEAD_RUNTIME_DEVICE_CUDA_API_H_
