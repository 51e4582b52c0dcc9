// SPDX-License-Identifier: Apache-2.0
//
// The verbs transport: links over InfiniBand, RoCE and iWARP.
//
// One reliable connected queue pair per peer and rail, or several (VerbsSettings::qps_per_rail).
// Each side registers a ring of slots that its peer writes frames into, announcing each; a frame
// needs a credit, and credits come back with frames of the other direction or, when there are none,
// in a message of their own. The receiver's sink reads the payload where the NIC put it.
//
// Per peer and rail this pins about 2 MiB (send ring and receive ring, 16 slots of 64 KiB each), or
// as little as 0.5 MiB where RLIMIT_MEMLOCK allows no more, and besides, once per rail, what the
// user has made known and sends from (user_memory.h). At most 256 KiB are on the wire at once, so
// that a slow or congested rail never queues longer than the NIC's retransmission timeout.
//
// A peer whose process or node dies is noticed by any link that is polled: a link that waits for a
// second asks the peer's NIC for a sign of life. The error comes about 1 s later on most NICs
// (their retransmissions), so a caller that sleeps on event_fd should poll every second or so.
//
// After fork() only the parent may use what it has opened here.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "fabric/pod_rails.h"
#include "runtime/transport/door/hall.h"
#include "runtime/transport/link.h"
#include "runtime/transport/verbs/settings.h"

namespace railhead::transport {

namespace verbs {
class DevicePort;
class UserMemory;
class VerbsApi;
}  // namespace verbs

// An opened port of an RDMA device, with a protection domain of its own. May be destroyed before
// the links that were opened on it. Any thread may open links on it.
class VerbsDevice {
 public:
  explicit VerbsDevice(std::shared_ptr<const verbs::DevicePort> port);

  const std::shared_ptr<const verbs::DevicePort>& port() const { return port_; }
  // From which its links send without copying.
  const std::shared_ptr<verbs::UserMemory>& memory() const { return memory_; }

  // One line for logs: rail, device, port, link layer, MTU and the preferred GID.
  std::string Describe() const;

 private:
  std::shared_ptr<const verbs::DevicePort> port_;
  std::shared_ptr<verbs::UserMemory> memory_;
};

// Whether libibverbs can be used in this process: OK, or the reason and what to install.
absl::Status VerbsLibraryStatus();

// Opens the device and port that `rail` names.
//
// Errors name rail, device and port, the cause and the fix: NotFound (no library; no such device in
// this container), PermissionDenied, Unavailable (port not active), FailedPrecondition (no usable
// GID or, of iWARP, no IP address in this network namespace; not in the partition; library too
// old), InvalidArgument (a setting that the port cannot have).
absl::StatusOr<std::unique_ptr<VerbsDevice>> OpenVerbsDevice(const fabric::PodRail& rail,
                                                             const VerbsSettings& settings);

// The same over a given table of verbs instead of the installed library's, and a given clock.
absl::StatusOr<std::unique_ptr<VerbsDevice>> OpenVerbsDevice(
    const fabric::PodRail& rail, const VerbsSettings& settings,
    std::shared_ptr<const verbs::VerbsApi> api, std::function<absl::Time()> clock);

// A link to the peer whose hall has this address, not connected yet: it connects as one that was
// lost does, and registers its memory then. The peer must do the same, sooner or later. `peer` is
// how error messages name it ("rank 3 (pod train-3, node worker-1)").
//
// Reconnect's errors: ResourceExhausted when not even the smallest rings can be pinned; the message
// then tells RLIMIT_MEMLOCK and how to raise it. FailedPrecondition when the two ports have nothing
// in common.
absl::StatusOr<std::unique_ptr<Link>> OpenVerbsLink(VerbsDevice& device, std::shared_ptr<Hall> hall,
                                                    Locator peer_hall, absl::string_view peer);

}  // namespace railhead::transport

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_H_
