// SPDX-License-Identifier: Apache-2.0
//
// Verbs transport: links over InfiniBand, RoCE and iWARP.
//
// One or more reliable connected queue pairs per peer and rail (VerbsSettings::qps_per_rail). Each
// side registers a ring of slots that its peer writes frames into and announces. A frame needs a
// credit; credits return with frames of the other direction, or else in separate messages. The
// receiver's sink reads the payload from the slot.
//
// Per peer and rail this pins about 2 MiB (send and receive ring, 16 slots of 64 KiB each), or as
// little as 0.5 MiB if RLIMIT_MEMLOCK is lower, and once per rail the user's registered memory
// (user_memory.h). At most 256 KiB are in flight, so that a slow or congested rail never queues
// longer than the NIC's retransmission timeout.
//
// Every polled link detects a dead peer: after one idle second it sends a keepalive to the peer's
// NIC. The error follows about 1 s later on most NICs (retransmissions), so callers that sleep on
// event_fd should poll every second or so.
//
// After fork() only the parent may use what it opened.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "fabric/pod_rails.h"
#include "runtime/base/log.h"
#include "runtime/device/memory.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/link.h"
#include "runtime/transport/verbs/settings.h"
#include "runtime/transport/verbs/shared_memory.h"

namespace railhead::transport {

namespace verbs {
class DevicePort;
class SelfPair;
class UserMemory;
class VerbsApi;
}  // namespace verbs

// An open port of an RDMA device with its own protection domain. May be destroyed before its links.
// Links may be opened on any thread.
class VerbsDevice {
 public:
  explicit VerbsDevice(std::shared_ptr<const verbs::DevicePort> port);

  const std::shared_ptr<const verbs::DevicePort>& port() const { return port_; }
  // Memory that its links send without copying.
  const std::shared_ptr<verbs::UserMemory>& memory() const { return memory_; }

  // Registers memory with this device, so that peers' NICs may write it and its links send from it
  // (UserMemory::Share has the arguments). Memory of a device is tried with a pattern first, if the
  // port is up, which leaves it as it was. Errors name the device and the cause.
  absl::StatusOr<std::unique_ptr<SharedMemory>> Share(absl::Span<std::byte> memory,
                                                      const device::DmaBuf* buffer, bool on_device,
                                                      const Logger& log);

  // Returns one line for logs: rail, device, port, link layer, MTU and preferred GID.
  std::string Describe() const;

 private:
  // The pair with which the device reads and writes memory of this node, made on first use.
  absl::StatusOr<std::shared_ptr<verbs::SelfPair>> Self();

  std::shared_ptr<const verbs::DevicePort> port_;
  std::shared_ptr<verbs::UserMemory> memory_;
  std::mutex mutex_;  // guards self_
  std::shared_ptr<verbs::SelfPair> self_;
};

// Returns OK if libibverbs can be used in this process; else the cause, and what to install.
absl::Status VerbsLibraryStatus();

// Opens the device and port named by `rail`.
//
// Errors name rail, device and port, the cause and the fix: NotFound (no library; no such device in
// this container), PermissionDenied, Unavailable (port not active), FailedPrecondition (no usable
// GID or, for iWARP, no IP address in this network namespace; not in the partition; library too
// old), InvalidArgument (a setting that the port does not support).
absl::StatusOr<std::unique_ptr<VerbsDevice>> OpenVerbsDevice(const fabric::PodRail& rail,
                                                             const VerbsSettings& settings);

// Does the same with a given table of verbs and clock.
absl::StatusOr<std::unique_ptr<VerbsDevice>> OpenVerbsDevice(
    const fabric::PodRail& rail, const VerbsSettings& settings,
    std::shared_ptr<const verbs::VerbsApi> api, std::function<absl::Time()> clock);

// Returns a link to the peer with this acceptor address, not connected yet; it connects, and
// registers its memory, like a lost link. The peer must do the same, at any time. `peer` names it
// in errors
// ("rank 3 (pod train-3, node worker-1)").
//
// Errors of Reconnect: ResourceExhausted if not even the smallest rings can be pinned, with
// RLIMIT_MEMLOCK and how to raise it. FailedPrecondition if the two ports have no common network.
absl::StatusOr<std::unique_ptr<Link>> OpenVerbsLink(VerbsDevice& device,
                                                    std::shared_ptr<Acceptor> acceptor,
                                                    Locator peer_acceptor, absl::string_view peer);

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_H_
