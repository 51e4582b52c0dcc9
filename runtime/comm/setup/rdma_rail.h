// SPDX-License-Identifier: Apache-2.0
//
// RDMA rail of a communicator. Tests replace it with fake NICs (comm/api/fake_rails_for_test.h).
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_RDMA_RAIL_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_RDMA_RAIL_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "fabric/pod_rails.h"
#include "runtime/base/log.h"
#include "runtime/device/memory.h"
#include "runtime/preflight/facts.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/link.h"
#include "runtime/transport/verbs/known_gpu.h"
#include "runtime/transport/verbs/verbs.h"

namespace railhead::comm {

// An open RDMA device of one rail. Lives as long as the links created from it.
class RdmaRail {
 public:
  // Payload that every frame of its links can carry, in bytes; equal for all devices.
  static constexpr size_t kMaxPayload = size_t{64} << 10;

  virtual ~RdmaRail() = default;
  // One line for logs: rail, device, port, link layer, MTU and address.
  virtual std::string Describe() const = 0;
  // Configuration of the port when it was opened.
  virtual preflight::PortFacts Facts() const = 0;
  // Returns an error if the minimum memory of `links` links cannot be pinned.
  virtual absl::Status CanPin(size_t links) const = 0;
  // Returns a link, not connected yet, to the peer with that acceptor; `peer` names it in errors.
  virtual absl::StatusOr<std::unique_ptr<transport::Link>> Open(
      std::shared_ptr<transport::Acceptor> acceptor, transport::Locator peer_acceptor,
      absl::string_view peer) = 0;
  // Thread-safe. Registers user memory until the result is released; the device's links send from
  // it without copying (transport/verbs/user_memory.h).
  virtual std::shared_ptr<const void> Know(absl::Span<const std::byte> memory,
                                           std::shared_ptr<const void> owner,
                                           const Logger& log) = 0;
  // Like Know, for GPU memory.
  virtual transport::verbs::KnownGpu KnowGpu(absl::Span<const std::byte> memory,
                                             const device::Memory& gpu, const Logger& log) = 0;
  // Returns true if its NIC can access memory of its own node by a queue pair (not iWARP), and if
  // its driver registers dma-bufs; false while the device is not open.
  virtual bool AccessesItself() const = 0;
  virtual bool TakesDmaBufs() const = 0;
  // Thread-safe. Registers memory that peers' NICs may also write (VerbsDevice::Share). Unavailable
  // while the device is not open.
  virtual absl::StatusOr<std::unique_ptr<transport::SharedMemory>> Share(
      absl::Span<std::byte> memory, const device::DmaBuf* buffer, bool on_device,
      const Logger& log) = 0;
};

// Opens the device of a rail, or returns the cause of failure.
using OpenRdmaRail =
    std::function<absl::StatusOr<std::unique_ptr<RdmaRail>>(const fabric::PodRail& rail)>;

// Opens a device with libibverbs.
absl::StatusOr<std::unique_ptr<RdmaRail>> OpenVerbsRail(const fabric::PodRail& rail,
                                                        const transport::VerbsSettings& settings);
// Returns the rail of an open device.
std::unique_ptr<RdmaRail> MakeVerbsRail(std::unique_ptr<transport::VerbsDevice> device);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_RDMA_RAIL_H_
