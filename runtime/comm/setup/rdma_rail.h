// SPDX-License-Identifier: Apache-2.0
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

// An opened RDMA device of one rail. Lives as long as the links that come from it.
class RdmaRail {
 public:
  virtual ~RdmaRail() = default;
  // One line for logs: rail, device, port, link layer, MTU and address.
  virtual std::string Describe() const = 0;
  // How the port is set up, as it was when it was opened.
  virtual preflight::PortFacts Facts() const = 0;
  // Whether so many links can have the memory that they cannot do without.
  virtual absl::Status CanPin(size_t links) const = 0;
  // A link to the peer whose acceptor is there, not connected yet; `peer` names it in errors.
  virtual absl::StatusOr<std::unique_ptr<transport::Link>> Open(
      std::shared_ptr<transport::Acceptor> acceptor, transport::Locator peer_acceptor,
      absl::string_view peer) = 0;
  // Any thread: makes memory of the user known, from which the device's links then send without
  // copying, until the result is gone (transport/verbs/user_memory.h).
  virtual std::shared_ptr<const void> Know(absl::Span<const std::byte> memory,
                                           std::shared_ptr<const void> owner,
                                           const Logger& log) = 0;
  // The same of memory of a GPU.
  virtual transport::verbs::KnownGpu KnowGpu(absl::Span<const std::byte> memory,
                                             const device::Memory& gpu, const Logger& log) = 0;
};

// Opens the device of a rail, or says what is missing.
using OpenRdmaRail =
    std::function<absl::StatusOr<std::unique_ptr<RdmaRail>>(const fabric::PodRail& rail)>;

// The real thing, over libibverbs.
absl::StatusOr<std::unique_ptr<RdmaRail>> OpenVerbsRail(const fabric::PodRail& rail,
                                                        const transport::VerbsSettings& settings);
// Of a device that is open.
std::unique_ptr<RdmaRail> MakeVerbsRail(std::unique_ptr<transport::VerbsDevice> device);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_RDMA_RAIL_H_
