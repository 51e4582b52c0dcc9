// SPDX-License-Identifier: Apache-2.0
//
// Open port of an RDMA device: context, protection domain, port attributes, usable GIDs and
// partitions. Shared by all links of a rail.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_DEVICE_PORT_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_DEVICE_PORT_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "fabric/pod_rails.h"
#include "runtime/device/memory.h"
#include "runtime/net/address.h"
#include "runtime/transport/verbs/gid.h"
#include "runtime/transport/verbs/pkey.h"
#include "runtime/transport/verbs/settings.h"
#include "runtime/transport/verbs/verbs_api.h"

namespace railhead::transport::verbs {

// Owns a verbs object and the table that destroys it.
template <typename T>
using Owned = std::unique_ptr<T, std::function<void(T*)>>;

// State of a port at one time.
struct PortState {
  ibv_port_attr attributes = {};
  std::vector<GidChoice> gids;            // not iWARP
  std::vector<net::IpAddress> addresses;  // iWARP only, best first

  bool infiniband() const { return attributes.link_layer == IBV_LINK_LAYER_INFINIBAND; }
};

// Immutable after Open, except for port events; thread-safe.
class DevicePort {
 public:
  static absl::StatusOr<std::shared_ptr<const DevicePort>> Open(const fabric::PodRail& rail,
                                                                const VerbsSettings& settings,
                                                                std::shared_ptr<const VerbsApi> api,
                                                                std::function<absl::Time()> clock);

  const VerbsApi& api() const { return *api_; }
  // Connection manager of iWARP; null for others.
  const CmApi* cm() const { return cm_.get(); }
  bool iwarp() const { return cm_ != nullptr; }
  // Maximum number of outstanding iWARP reads of a queue pair, in each direction.
  uint8_t reads() const { return reads_; }
  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain() const { return domain_.get(); }
  uint8_t port() const { return port_; }
  // State when the port was opened.
  const PortState& state() const { return state_; }
  const VerbsSettings& settings() const { return settings_; }
  // Usable partitions, best first; never empty. Read once when the port was opened: subnet managers
  // do not move partitions, and reading a large table for each connection is slow.
  const std::vector<PkeyChoice>& pkeys() const { return pkeys_; }

  // Prefix of every error: "rail 0, device mlx5_0 port 1".
  const std::string& name() const { return name_; }

  absl::Time Now() const { return clock_(); }

  // Pins and registers memory with IBV_ACCESS_ rights until the result is destroyed, which must
  // precede the memory and the port.
  absl::StatusOr<Owned<ibv_mr>> Register(void* memory, size_t size, int access) const;
  // Does the same for memory without pages of this process, through its dma-buf.
  absl::StatusOr<Owned<ibv_mr>> RegisterDmaBuf(const device::DmaBuf& buffer,
                                               absl::Span<const std::byte> memory,
                                               int access) const;

  // Returns true if the kernel's driver registers dma-bufs: it looks at the descriptor, which is
  // none.
  bool TakesDmaBufs() const;

  // Reads the current state. Unavailable if the port is not active, FailedPrecondition if it has no
  // address.
  absl::StatusOr<PortState> Read() const;

  // Returns the current state as a word ("ACTIVE").
  std::string StateNow() const;

  // Descriptor of port events (IBV_EVENT_PORT_ERR and others), which arrive within milliseconds,
  // long before retransmissions end. Readable when there are any.
  int event_fd() const { return context_->async_fd; }
  // Reads events, unless this was done just before: it costs a system call.
  void LookAtEvents() const;
  // Number of port-down events (without those reversed in the same read), and of port-up events.
  uint64_t downs() const { return downs_.load(std::memory_order_relaxed); }
  uint64_t ups() const { return ups_.load(std::memory_order_relaxed); }

 private:
  DevicePort() = default;
  absl::StatusOr<Owned<ibv_mr>> Registered(ibv_mr* region, absl::string_view what) const;
  absl::Status OpenContext(absl::string_view device);
  absl::Status ReadAddresses(PortState& state) const;
  absl::Status UseGids(absl::Span<const ibv_gid_entry> table, PortState& state) const;
  absl::Status UseIpAddresses(absl::Span<const ibv_gid_entry> table, PortState& state) const;
  absl::Status ReadPkeys();

  std::shared_ptr<const VerbsApi> api_;
  std::shared_ptr<const CmApi> cm_;
  uint8_t reads_ = 0;
  std::function<absl::Time()> clock_;
  std::string name_;
  uint8_t port_ = 1;
  Owned<ibv_context> context_;
  Owned<ibv_pd> domain_;
  std::string interface_;  // on the node, for advice; "" if unknown
  PortState state_;
  VerbsSettings settings_;
  std::vector<PkeyChoice> pkeys_;
  mutable std::atomic<int64_t> next_look_{0};  // at events, in nanoseconds of the clock
  mutable std::atomic<uint64_t> downs_{0};
  mutable std::atomic<uint64_t> ups_{0};
};

// Returns the bytes of a path MTU code.
int MtuBytes(ibv_mtu mtu);

// Makes reads of a device's descriptor return at once if there is nothing to read.
absl::Status MakeNonBlocking(absl::string_view name, int fd);

// Returns the status of a verbs call that failed with `error` (errno): "NAME: cannot WHAT: TEXT",
// with advice for known causes. ResourceExhausted for lack of pinned memory, with the limit.
absl::Status VerbsError(absl::string_view name, absl::string_view what, int error);

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_DEVICE_PORT_H_
