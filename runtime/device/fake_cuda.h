// SPDX-License-Identifier: Apache-2.0
//
// Fake GPUs behind the table of the CUDA driver. For tests.
//
// Their memory has an inaccessible address: touching it crashes. The bytes are in an anonymous
// file, mapped elsewhere, which the driver's copies use; its descriptor is exported as dma-buf, and
// a table of these files gives NICs access as nvidia-peermem does. Tests inject faults.
#ifndef RAILHEAD_RUNTIME_DEVICE_FAKE_CUDA_H_
#define RAILHEAD_RUNTIME_DEVICE_FAKE_CUDA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/device/cuda_api.h"
#include "runtime/net/fd.h"

namespace railhead::device {

// Bytes of an allocation, kept alive by their users.
class FakePages {
 public:
  // Initialized to zeros.
  explicit FakePages(size_t bytes);
  ~FakePages();
  FakePages(const FakePages&) = delete;
  FakePages& operator=(const FakePages&) = delete;

  absl::Span<std::byte> bytes() const { return {data_, size_}; }
  int fd() const { return fd_.get(); }

 private:
  net::Fd fd_;
  std::byte* data_;
  size_t size_;
};

// Thread-safe.
class FakeCuda final : public CudaApi, public CudaSource {
 public:
  ~FakeCuda() override;

  // What a program does ---------------------------------------------------------------------------
  // Allocates GPU memory; `own_context`: with a context, like cuMemAlloc, else with the GPU's
  // primary one, like mapped memory.
  std::byte* Allocate(size_t bytes, int gpu = 0, bool own_context = true);
  // Allocates memory accessible to GPU and CPU.
  std::byte* AllocateManaged(size_t bytes);
  // Gives no buffer ids from now on, as for some mapped memory.
  void WithoutIds();
  void Free(std::byte* memory);
  // Frees it and allocates the same size at the same address, as a driver may.
  void Reallocate(std::byte* memory);
  // Returns its bytes from this address, for the test.
  std::byte* Bytes(const std::byte* memory) const;

  // Faults ---------------------------------------------------------------------------------------
  // While false, the process has no driver.
  void SetLoaded(bool loaded);
  void SetInitialized(bool initialized);
  void SetDmaBuf(bool supported);
  void SetPeermem(bool loaded);
  // Sets the result of all exports, and of copies after `after` more.
  void FailExports(int result);
  void FailCopies(int result, int after = 0);
  void FailPinning(int result);
  // While true, some thread captures a stream of its own in the global mode: copies of host memory,
  // waits and allocations fail on threads that are not relaxed.
  void Capture(bool captures);
  // Sets the result of pointer queries, as after a failed kernel; FailSynchronizing: of setting
  // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
  void FailQuestions(int result);
  void FailSynchronizing(int result);

  // What happened --------------------------------------------------------------------------------
  int copies() const;
  size_t pinned() const;                             // allocations of host memory
  size_t retained() const;                           // primary contexts
  bool synchronized(const std::byte* memory) const;  // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS is set

  // For NICs -------------------------------------------------------------------------------------
  bool Owns(const void* address) const;
  // Acts as nvidia-peermem; null if it is not loaded, or these bytes are not in one allocation.
  std::shared_ptr<const FakePages> Pin(const void* address, size_t bytes) const;
  // Returns the offset of an address in its pages.
  uint64_t OffsetOf(const void* address) const;

  // CudaSource and CudaApi -----------------------------------------------------------------------
  const CudaApi* Loaded() override;
  const char* ErrorText(int result) const override;
  int PointerGetAttributes(absl::Span<int> attributes, absl::Span<void*> values,
                           uint64_t address) const override;
  int PointerSetAttribute(const void* value, int attribute, uint64_t address) const override;
  int DeviceGet(int* device, int ordinal) const override;
  int DeviceGetAttribute(int* value, int attribute, int device) const override;
  int DevicePrimaryCtxRetain(CudaContext* context, int device) const override;
  int DevicePrimaryCtxRelease(int device) const override;
  int CtxPushCurrent(CudaContext context) const override;
  int CtxPopCurrent(CudaContext* context) const override;
  int MemcpyDtoH(void* to, uint64_t from, size_t bytes) const override;
  int MemcpyHtoD(uint64_t to, const void* from, size_t bytes) const override;
  int MemcpyDtoD(uint64_t to, uint64_t from, size_t bytes) const override;
  int StreamSynchronize() const override;
  int ThreadExchangeStreamCaptureMode(int* mode) const override;
  int MemHostAlloc(void** memory, size_t bytes, unsigned flags) const override;
  int MemFreeHost(void* memory) const override;
  int MemGetHandleForAddressRange(void* handle, uint64_t address, size_t bytes, int type,
                                  uint64_t flags) const override;

 private:
  struct Allocation {
    std::shared_ptr<FakePages> pages;
    uint64_t id = 0;
    int gpu = 0;
    CudaContext context = nullptr;
    bool managed = false;
    bool synchronized = false;
  };
  // Freed with its context, if that is a primary one.
  struct Pinned {
    std::unique_ptr<std::byte[]> bytes;
    CudaContext context = nullptr;
  };
  // Requires the lock. Returns the allocation that contains all these bytes, or null.
  Allocation* Holding(uint64_t address, size_t bytes, uint64_t* offset) const;
  // Requires the lock. Returns the error of a call that no capture allows, or success.
  int MayCall() const;
  // The same for a copy.
  int MayCopy() const;

  mutable std::mutex mutex_;                            // guards all below
  mutable std::map<uint64_t, Allocation> allocations_;  // by address
  mutable std::map<void*, Pinned> pinned_;
  mutable std::map<int, size_t> retained_;  // by device
  mutable int copies_ = 0;
  // Requires the lock.
  uint64_t NextId() { return ids_ ? next_id_++ : 0; }

  uint64_t next_id_ = 1;
  bool ids_ = true;
  bool loaded_ = true;
  bool initialized_ = true;
  bool dma_buf_ = true;
  bool peermem_ = true;
  int export_result_ = kCudaSuccess;
  int copy_result_ = kCudaSuccess;
  mutable int copies_until_failure_ = 0;
  int pin_result_ = kCudaSuccess;
  bool captures_ = false;
  int question_result_ = kCudaSuccess;
  int synchronize_result_ = kCudaSuccess;
};

}  // namespace railhead::device

#endif  // RAILHEAD_RUNTIME_DEVICE_FAKE_CUDA_H_
