// SPDX-License-Identifier: Apache-2.0
//
// Memory of a GPU: whether an address is in some, copies into it and out of it, and how a NIC is
// given it. A CPU must not touch it.
//
// What is copied is copied at once, behind what the legacy default stream of the memory's context
// holds; a NIC that reads memory waits for no stream at all. So who has kernels or copies of any
// stream write values that are to be sent waits for these first. (GPUs' own reductions, and their
// own ways to each other, would stand beside the copies.)
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

// A dma-buf, and where in it the memory begins that was asked for.
struct DmaBuf {
  net::Fd fd;
  uint64_t offset = 0;  // bytes
};

// An allocation, as long as its user keeps it. A value; any thread. Errors name the GPU, what was
// to be done and the driver's reason.
class Memory {
 public:
  // Nothing for what a CPU may touch: all that is not the driver's, and of that what it has pinned
  // or manages. After an error (the driver has failed) nobody knows, and nobody may touch it.
  static absl::StatusOr<std::optional<Memory>> Find(const CudaApi& cuda, const void* address);
  // Whether it is managed: the CPU's and the GPUs', and moved between them, so that its pages are
  // not to be given to NICs.
  static absl::StatusOr<bool> IsManaged(const CudaApi& cuda, const void* address);

  // "GPU 3", as this process counts them.
  std::string Name() const;
  // Whether the driver tells it from others that had its address before. Not that which is mapped
  // (cuMemMap) with some drivers.
  bool HasIdentity() const { return allocation_ != 0; }
  // Whether it is the same allocation for certain: an address that was freed may be given out
  // again.
  bool IsSame(const Memory& other) const {
    return HasIdentity() && allocation_ == other.allocation_;
  }

  absl::Status CopyOut(const std::byte* from, std::byte* to, size_t bytes) const;
  absl::Status CopyIn(const std::byte* from, std::byte* to, size_t bytes) const;
  // Both are GPUs'.
  absl::Status CopyWithin(const std::byte* from, std::byte* to, size_t bytes) const;

  // From then on all copies into it are complete when they return, so that a NIC sees them.
  absl::Status Synchronize(const std::byte* address) const;
  // Unimplemented where GPU, driver or kernel have no dma-buf.
  absl::StatusOr<DmaBuf> Export(absl::Span<const std::byte> bytes) const;

 private:
  friend class PinnedMemory;
  explicit Memory(const CudaApi& cuda) : cuda_(&cuda) {}
  // Does it in a context that sees the memory, and makes an error of what it returns.
  absl::Status Do(absl::string_view what, absl::FunctionRef<int()> what_to_do) const;
  absl::Status DoIn(CudaContext context, absl::string_view what,
                    absl::FunctionRef<int()> what_to_do) const;
  // The primary context of its GPU, which is there until it is released as often.
  absl::StatusOr<CudaContext> RetainPrimary() const;
  void ReleasePrimary() const;
  absl::Status Error(absl::string_view what, int result) const;

  const CudaApi* cuda_;
  int gpu_ = 0;
  CudaContext context_ = nullptr;  // null: the GPU's primary one
  uint64_t allocation_ = 0;
};

// Memory of the host that GPUs copy to and from at full speed. It keeps what it has, and grows. It
// lives in the primary context of a GPU, and ends with it: so that is retained as long.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  ~PinnedMemory() { Free(); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // At least so many bytes, aligned to a cache line; what they hold is lost. `for_whom`: the GPU
  // memory that is copied.
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
