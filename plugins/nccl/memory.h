// SPDX-License-Identifier: Apache-2.0
//
// Memory that NCCL has registered with a connection, for messages that the NICs of both sides move
// without a copy: of the host, or of a GPU.
#ifndef RAILHEAD_PLUGINS_NCCL_MEMORY_H_
#define RAILHEAD_PLUGINS_NCCL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/log.h"
#include "runtime/collectives/registered_memory.h"
#include "runtime/comm/setup/rdma_rail.h"
#include "runtime/device/memory.h"

namespace railhead::nccl {

// Thread-safe.
class Memory final : public collectives::RegisteredMemory {
 public:
  // `rails`: of the connection, null for TCP. Memory of the host that a rail cannot register is
  // copied there. Memory of a GPU must be registered with all rails; `buffer` is its dma-buf, or
  // null (nvidia-peermem).
  static absl::StatusOr<std::unique_ptr<Memory>> Register(absl::Span<comm::RdmaRail* const> rails,
                                                          absl::Span<std::byte> memory, bool on_gpu,
                                                          const device::DmaBuf* buffer,
                                                          const Logger& log);

  uint64_t number() const override { return number_; }
  const collectives::RemoteMemory& remote() const override { return remote_; }
  bool on_device() const override { return on_gpu_; }
  absl::Status Write(std::byte* to, absl::Span<const std::byte> from) const override;
  // Makes all that the NICs of these rails have written visible to the GPU.
  absl::Status Flush(const std::byte* address, absl::FunctionRef<bool(size_t rail)> is_up) const;

 private:
  explicit Memory(bool on_gpu);

  const uint64_t number_;
  const bool on_gpu_;
  collectives::RemoteMemory remote_;
  std::vector<std::unique_ptr<transport::SharedMemory>> by_rail_;  // null: not registered
};

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_MEMORY_H_
