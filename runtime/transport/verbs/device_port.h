// SPDX-License-Identifier: Apache-2.0
//
// An opened port of an RDMA device: context, protection domain, port attributes, usable GIDs and
// partitions.
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

// Owns a verbs object together with the table that can destroy it.
template <typename T>
using Owned = std::unique_ptr<T, std::function<void(T*)>>;

// A port as it was at some moment.
struct PortState {
  ibv_port_attr attributes = {};
  std::vector<GidChoice> gids;            // not of iWARP
  std::vector<net::IpAddress> addresses;  // of iWARP only, best first

  bool infiniband() const { return attributes.link_layer == IBV_LINK_LAYER_INFINIBAND; }
};

// Immutable once opened but for what the device tells of the port; any thread may use it.
class DevicePort {
 public:
  static absl::StatusOr<std::shared_ptr<const DevicePort>> Open(const fabric::PodRail& rail,
                                                                const VerbsSettings& settings,
                                                                std::shared_ptr<const VerbsApi> api,
                                                                std::function<absl::Time()> clock);

  const VerbsApi& api() const { return *api_; }
  // The connection manager by which its queue pairs are connected; null unless it is iWARP.
  const CmApi* cm() const { return cm_.get(); }
  bool iwarp() const { return cm_ != nullptr; }
  // How many reads of iWARP a queue pair may have under way, and may be asked for.
  uint8_t reads() const { return reads_; }
  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain() const { return domain_.get(); }
  uint8_t port() const { return port_; }
  // As it was when the port was opened.
  const PortState& state() const { return state_; }
  const VerbsSettings& settings() const { return settings_; }
  // The partitions that it may use, best first; never none. As they were when it was opened: subnet
  // managers leave a partition its index, and reading a large table for each connection takes long.
  const std::vector<PkeyChoice>& pkeys() const { return pkeys_; }

  // "rail 0, device mlx5_0 port 1", with which every error begins.
  const std::string& name() const { return name_; }

  absl::Time Now() const { return clock_(); }

  // Pins memory and makes it known to the device, with IBV_ACCESS_ rights. Both last as long as the
  // result, which must go before the memory and the port.
  absl::StatusOr<Owned<ibv_mr>> Register(void* memory, size_t size, int access) const;
  // The same of memory that has no pages of this process: the NIC gets at it through the dma-buf.
  absl::StatusOr<Owned<ibv_mr>> RegisterDmaBuf(const device::DmaBuf& buffer,
                                               absl::Span<const std::byte> memory,
                                               int access) const;

  // As it is now. Unavailable when it is not active, FailedPrecondition when it has no address.
  absl::StatusOr<PortState> Read() const;

  // The port's state now, as a word ("ACTIVE").
  std::string StateNow() const;

  // What the device tells of the port (IBV_EVENT_PORT_ERR and others), within milliseconds, and
  // long before it gives up what it should send. Readable when there is news.
  int event_fd() const { return context_->async_fd; }
  // Reads the news, if nobody has done so just now: it costs a system call.
  void LookAtEvents() const;
  // How often it was told to be down, and not up again by the time that was read; and how often up.
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

// Bytes of a path MTU code.
int MtuBytes(ibv_mtu mtu);

// Has a file of the device return at once when there is nothing to read.
absl::Status MakeNonBlocking(absl::string_view name, int fd);

// The status of a verbs call that failed with `error` (errno): "NAME: cannot WHAT: TEXT", with
// advice where the cause is known. Running out of pinned memory gives ResourceExhausted and tells
// the limit.
absl::Status VerbsError(absl::string_view name, absl::string_view what, int error);

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_DEVICE_PORT_H_
