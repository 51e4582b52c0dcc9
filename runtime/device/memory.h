// SPDX-License-Identifier: Apache-2.0
//
// GPU memory: detection of its addresses, copies, and export to NICs. The CPU must not access it.
//
// Copies run at once, after the work of the legacy default stream of the memory's context; NICs
// wait for no stream. So programs must wait for kernels and copies of all streams that write values
// to be sent. (GPU reductions and GPU-to-GPU paths would be added next to the copies.)
#ifndef RAILHEAD_RUNTIME_DEVICE_MEMORY_H_
#define RAILHEAD_RUNTIME_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/device/cuda_api.h"
#include "runtime/net/fd.h"

namespace railhead::device {

// A dma-buf, and the offset of the requested memory in it.
struct DmaBuf {
  net::Fd fd;
  uint64_t offset = 0;  // bytes
};

// A view of an allocation, for as long as its user keeps it. Copyable, thread-safe. Errors name the
// GPU, the operation and the driver's reason.
class Memory {
 public:
  // Returns nullopt for memory that the CPU may access: all that is not the driver's, and pinned or
  // managed memory. After an error (of the driver) the kind is unknown, and the memory must not be
  // accessed.
  static absl::StatusOr<std::optional<Memory>> Find(const CudaApi& cuda, const void* address);
  // Returns true for managed memory, which moves between CPU and GPUs, so that its pages cannot be
  // given to NICs.
  static absl::StatusOr<bool> IsManaged(const CudaApi& cuda, const void* address);

  // Returns "GPU 3", by this process's numbering.
  std::string Name() const;
  // Returns true if the driver distinguishes it from earlier allocations at its address; false for
  // mapped memory (cuMemMap) with some drivers.
  bool HasIdentity() const { return allocation_ != 0; }
  // Returns true if it is certainly the same allocation: freed addresses may be reused.
  bool IsSame(const Memory& other) const {
    return HasIdentity() && allocation_ == other.allocation_;
  }

  absl::Status CopyOut(const std::byte* from, std::byte* to, size_t bytes) const;
  absl::Status CopyIn(const std::byte* from, std::byte* to, size_t bytes) const;
  // Both addresses are GPU memory.
  absl::Status CopyWithin(const std::byte* from, std::byte* to, size_t bytes) const;

  // Makes all later copies into it complete before they return, so that a NIC sees the data.
  absl::Status Synchronize(const std::byte* address) const;
  // Unimplemented if GPU, driver or kernel lack dma-buf.
  absl::StatusOr<DmaBuf> Export(absl::Span<const std::byte> bytes) const;

 private:
  friend class PinnedMemory;
  explicit Memory(const CudaApi& cuda) : cuda_(&cuda) {}
  // Runs it in a context with access to the memory, and converts its error.
  absl::Status Do(absl::string_view what, absl::FunctionRef<int()> what_to_do) const;
  absl::Status DoIn(CudaContext context, absl::string_view what,
                    absl::FunctionRef<int()> what_to_do) const;
  // Retains the primary context of its GPU until the matching release.
  absl::StatusOr<CudaContext> RetainPrimary() const;
  void ReleasePrimary() const;
  absl::Status Error(absl::string_view what, int result) const;

  const CudaApi* cuda_;
  int gpu_ = 0;
  CudaContext context_ = nullptr;  // null: the GPU's primary one
  uint64_t allocation_ = 0;
};

// Host memory with fast GPU copies; grows as needed. It belongs to the primary context of a GPU,
// which it retains.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  ~PinnedMemory() { Free(); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // Returns at least `bytes` bytes, aligned to a cache line; earlier content is lost. `for_whom`:
  // the GPU memory that is copied.
  absl::StatusOr<std::byte*> Get(size_t bytes, const Memory& for_whom);

 private:
  void Free();

  std::optional<Memory> of_;
  CudaContext primary_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace railhead::device

#endif  // RAILHEAD_RUNTIME_DEVICE_MEMORY_H_
