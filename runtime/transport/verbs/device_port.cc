// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/device_port.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace railhead::transport::verbs {
namespace {

constexpr int kMaxPorts = 255;
constexpr int kLastVlanPriority = 7;

// Minimum interval of reading events, by all links together.
constexpr absl::Duration kLookPause = absl::Milliseconds(1);

// A queue pair requests about one per frame in flight (iwarp_pair.h).
constexpr int kMostReads = 16;

absl::string_view StateName(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "ACTIVE_DEFER";
    case IBV_PORT_NOP:
      break;
  }
  return "unknown";
}

// "8 KiB", or "unlimited".
std::string MemlockLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  if (limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return absl::StrCat(limit.rlim_cur / 1024, " KiB");
}

// Exclusive namespaces (kernel 5.2 and later) hide an RDMA device, and refuse to open it.
constexpr absl::string_view kExclusiveAdvice =
    "; if `rdma system show` on the node prints \"netns exclusive\", use hostNetwork or have "
    "rdma-cni move the device into the pod";

std::string Advice(int error) {
  switch (error) {
    case ENOMEM:
      return absl::StrCat(
          "; RLIMIT_MEMLOCK of this process is ", MemlockLimit(),
          ": set LimitMEMLOCK=infinity for the node's container runtime service, or "
          "devicePlugin.memlock in Railhead's chart (the capability IPC_LOCK helps only processes "
          "that run as root). If it is unlimited, the adapter has run out of resources: "
          "run fewer ranks on the node, or set RAILHEAD_IB_QPS_PER_RAIL=1");
    case EACCES:
    case EPERM:
      return absl::StrCat(
          "; check that the pod requests rdma/hca and that /dev/infiniband/uverbs* is readable and "
          "writable for its user",
          error == EPERM ? kExclusiveAdvice : "");
    case ENOSYS:
      return "; no RDMA device found: load the kernel module ib_uverbs and the adapter's driver "
             "on the node, and check that /sys/class/infiniband_verbs exists in the container";
    case ENODEV:
    case EIO:
      return "; the device has gone or was reset: see the kernel's log on the node";
    default:
      return "";
  }
}

}  // namespace

int MtuBytes(ibv_mtu mtu) { return 128 << static_cast<int>(mtu); }

absl::Status MakeNonBlocking(absl::string_view name, int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0) return absl::OkStatus();
  return VerbsError(name, "make the device's events non-blocking", errno);
}

absl::Status VerbsError(absl::string_view name, absl::string_view what, int error) {
  const std::string message =
      absl::StrCat(name, ": cannot ", what, ": ", std::strerror(error), Advice(error));
  switch (error) {
    case ENOMEM:
    case EAGAIN:
      return absl::ResourceExhaustedError(message);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case ENODEV:
    case EIO:
      return absl::UnavailableError(message);
    case ENOSYS:
      return absl::NotFoundError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::StatusOr<std::shared_ptr<const DevicePort>> DevicePort::Open(
    const fabric::PodRail& rail, const VerbsSettings& settings, std::shared_ptr<const VerbsApi> api,
    std::function<absl::Time()> clock) {
  std::shared_ptr<DevicePort> port(new DevicePort());
  port->settings_ = settings;
  port->api_ = std::move(api);
  port->clock_ = std::move(clock);
  port->name_ = absl::StrCat("rail ", rail.rail, ", device ", rail.device, " port ", rail.port);
  if (rail.port < 1 || rail.port > kMaxPorts) {
    return absl::InvalidArgumentError(
        absl::StrCat(port->name_, ": a port is a number from 1 to ", kMaxPorts));
  }
  port->port_ = static_cast<uint8_t>(rail.port);
  if (absl::Status status = port->OpenContext(rail.device); !status.ok()) return status;
  port->interface_ = rail.netdev;
  absl::StatusOr<PortState> state = port->Read();
  if (!state.ok()) return state.status();
  port->state_ = *std::move(state);
  if (!port->state_.infiniband() && settings.service_level > kLastVlanPriority) {
    return absl::InvalidArgumentError(
        absl::StrCat(port->name_, ": service level ", settings.service_level,
                     " is too high for RoCE, where it is the VLAN priority, 0 to ",
                     kLastVlanPriority, "; set RAILHEAD_IB_SL accordingly"));
  }
  if (settings.qps_per_rail < 1 || settings.qps_per_rail > kMostQpsPerRail) {
    return absl::InvalidArgumentError(
        absl::StrCat(port->name_, ": ", settings.qps_per_rail,
                     " queue pairs for each connection; set RAILHEAD_IB_QPS_PER_RAIL from 1 to ",
                     kMostQpsPerRail));
  }
  if (absl::Status status = port->ReadPkeys(); !status.ok()) return status;

  ibv_pd* const domain = port->api_->AllocPd(port->context());
  if (domain == nullptr) return VerbsError(port->name_, "allocate a protection domain", errno);
  port->domain_ = Owned<ibv_pd>(
      domain, [table = port->api_.get()](ibv_pd* pd) { static_cast<void>(table->DeallocPd(pd)); });
  return port;
}

absl::Status DevicePort::OpenContext(absl::string_view device) {
  int count = 0;
  errno = 0;
  ibv_device** const list = api_->GetDeviceList(&count);
  if (list == nullptr) return VerbsError(name_, "list RDMA devices", errno);
  const Owned<ibv_device*> list_owner(list, [this](ibv_device** l) { api_->FreeDeviceList(l); });

  ibv_device* found = nullptr;
  std::vector<std::string> seen;
  for (int i = 0; i < count; ++i) {
    seen.emplace_back(api_->GetDeviceName(list[i]));
    if (seen.back() == device) found = list[i];
  }
  if (found == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        name_, ": libibverbs does not list this device; it lists ",
        seen.empty() ? "none" : absl::StrJoin(seen, ", "),
        ". Check that the pod requests rdma/hca, that /sys/class/infiniband and "
        "/dev/infiniband/uverbs* exist in the container, and that the image has the device's "
        "driver (ibverbs-providers)",
        kExclusiveAdvice));
  }
  if (found->transport_type == IBV_TRANSPORT_IWARP) {
    absl::StatusOr<std::shared_ptr<const CmApi>> cm = api_->ConnectionManager();
    if (!cm.ok()) {
      return absl::Status(cm.status().code(), absl::StrCat(name_, ": ", cm.status().message()));
    }
    cm_ = *std::move(cm);
  }
  errno = 0;
  ibv_context* const context = api_->OpenDevice(found);
  if (context == nullptr) return VerbsError(name_, "open the device", errno);
  context_ = Owned<ibv_context>(
      context, [table = api_.get()](ibv_context* c) { static_cast<void>(table->CloseDevice(c)); });
  if (absl::Status made = MakeNonBlocking(name_, context->async_fd); !made.ok()) return made;
  if (!iwarp()) return absl::OkStatus();
  ibv_device_attr attributes = {};
  if (const int error = api_->QueryDevice(context, &attributes); error != 0) {
    return VerbsError(name_, "query the device", error);
  }
  reads_ = static_cast<uint8_t>(std::clamp(
      std::min(attributes.max_qp_rd_atom, attributes.max_qp_init_rd_atom), 1, kMostReads));
  return absl::OkStatus();
}

absl::StatusOr<Owned<ibv_mr>> DevicePort::Register(void* memory, size_t size, int access) const {
  errno = 0;
  return Registered(api_->RegMr(domain(), memory, size, access),
                    absl::StrCat("pin and register ", size, " bytes of memory"));
}

absl::StatusOr<Owned<ibv_mr>> DevicePort::RegisterDmaBuf(const device::DmaBuf& buffer,
                                                         absl::Span<const std::byte> memory,
                                                         int access) const {
  errno = 0;
  return Registered(
      api_->RegDmabufMr(domain(), buffer.offset, memory.size(),
                        reinterpret_cast<uintptr_t>(memory.data()), buffer.fd.get(), access),
      absl::StrCat("register ", memory.size(), " bytes of a dma-buf"));
}

bool DevicePort::TakesDmaBufs() const {
  errno = 0;
  ibv_mr* const none = api_->RegDmabufMr(domain(), 0, 0, 0, /*fd=*/-1, 0);
  if (none != nullptr) static_cast<void>(api_->DeregMr(none));
  return errno != EOPNOTSUPP && errno != EPROTONOSUPPORT && errno != ENOSYS;
}

absl::StatusOr<Owned<ibv_mr>> DevicePort::Registered(ibv_mr* region, absl::string_view what) const {
  if (region == nullptr) return VerbsError(name_, what, errno);
  return Owned<ibv_mr>(region,
                       [api = api_.get()](ibv_mr* mr) { static_cast<void>(api->DeregMr(mr)); });
}

absl::StatusOr<PortState> DevicePort::Read() const {
  PortState state;
  ibv_port_attr& attributes = state.attributes;
  if (const int error = api_->QueryPort(context(), port_, &attributes); error != 0) {
    return VerbsError(name_, "query the port", error);
  }
  if (attributes.link_layer == IBV_LINK_LAYER_UNSPECIFIED) {
    attributes.link_layer = IBV_LINK_LAYER_INFINIBAND;  // devices older than RoCE leave it unset
  }
  if (attributes.state != IBV_PORT_ACTIVE) {
    return absl::UnavailableError(
        absl::StrCat(name_, ": the port is ", StateName(attributes.state),
                     state.infiniband() ? "; check the cable and that a subnet manager runs"
                                        : "; check the cable and that its network interface is up",
                     interface_.empty() ? "" : absl::StrCat(" (", interface_, " on the node)")));
  }
  if (absl::Status status = ReadAddresses(state); !status.ok()) return status;
  return state;
}

absl::Status DevicePort::ReadAddresses(PortState& state) const {
  ibv_device_attr device = {};
  if (const int error = api_->QueryDevice(context(), &device); error != 0) {
    return VerbsError(name_, "query the device", error);
  }
  // The table call returns entries of all ports. Other ports' tables have this port's length.
  const size_t most = static_cast<size_t>(std::max(state.attributes.gid_tbl_len, 1)) *
                      std::max<size_t>(device.phys_port_cnt, 1);
  std::vector<ibv_gid_entry> table(most);
  const ssize_t found = api_->QueryGidTable(context(), absl::MakeSpan(table));
  if (found < 0) return VerbsError(name_, "read the GID table", static_cast<int>(-found));
  table.resize(static_cast<size_t>(found));
  return iwarp() ? UseIpAddresses(table, state) : UseGids(table, state);
}

absl::Status DevicePort::UseGids(absl::Span<const ibv_gid_entry> table, PortState& state) const {
  std::set<uint32_t> node;  // of its interface there
  for (const ibv_gid_entry& entry : table) {
    if (state.infiniband() || interface_.empty() || entry.port_num != port_) continue;
    const std::string netdev = api_->GidInterface(context(), port_, entry.gid_index);
    // VLANs on it are the node's too.
    if (netdev == interface_ || absl::StartsWith(netdev, interface_ + ".")) {
      node.insert(entry.gid_index);
    }
  }
  state.gids = UsableGids(table, port_, state.infiniband(), api_->OwnAddresses(), node);
  if (state.gids.empty() && !state.infiniband()) {
    return absl::FailedPreconditionError(absl::StrCat(
        name_, ": none of the ", table.size(),
        " entries of the GID table can be used; give the rail's network interface an IP address "
        "(where RDMA network namespaces are exclusive, the interface must be inside the pod)"));
  }
  return absl::OkStatus();
}

absl::Status DevicePort::ReadPkeys() {
  // RoCE has one partition, whatever the table's length.
  std::vector<uint16_t> table(1, kDefaultPkey);
  if (state_.infiniband()) table.resize(state_.attributes.pkey_tbl_len);
  for (size_t i = 0; i < table.size() && state_.infiniband(); ++i) {
    const int error = api_->QueryPkey(context(), port_, static_cast<int>(i), table[i]);
    if (error != 0) return VerbsError(name_, "read the P_Key table", error);
  }
  pkeys_ = UsablePkeys(table, settings_.pkey);
  if (!pkeys_.empty()) return absl::OkStatus();
  const std::vector<PkeyChoice> all = UsablePkeys(table, 0);
  if (all.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        name_,
        ": its P_Key table is empty; have the subnet manager put the port into a partition"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      name_, ": the port is not in partition ", PkeyText(settings_.pkey),
      " (RAILHEAD_IB_PKEY), but in ", PkeyText(WithoutIndices(all)),
      "; set it to one of these, or have the subnet manager put the port into the partition"));
}

// The GID of an iWARP port is its interface's Ethernet address, and zeros. The connection manager
// takes only addresses of this process's network namespace.
absl::Status DevicePort::UseIpAddresses(absl::Span<const ibv_gid_entry> table,
                                        PortState& state) const {
  for (const ibv_gid_entry& entry : table) {
    if (entry.port_num != port_) continue;
    net::MacAddress mac;
    std::copy_n(entry.gid.raw, mac.size(), mac.begin());
    state.addresses = cm_->AddressesOfMac(mac);
    if (!state.addresses.empty()) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      name_, ": no interface of this pod belongs to this iWARP device and has an IP address",
      interface_.empty() ? "" : absl::StrCat(" (on the node it is ", interface_, ")"),
      "; iWARP connects through the pod's own network: run the pod with hostNetwork: true, or have "
      "the interface moved into it"));
}

void DevicePort::LookAtEvents() const {
  const int64_t now = absl::ToUnixNanos(Now());
  int64_t next = next_look_.load(std::memory_order_relaxed);
  if (now < next ||
      !next_look_.compare_exchange_strong(next, now + absl::ToInt64Nanoseconds(kLookPause))) {
    return;
  }
  bool down = false;
  ibv_async_event event = {};
  while (api_->GetAsyncEvent(context(), &event) == 0) {
    const bool ours = event.element.port_num == port_;
    if (event.event_type == IBV_EVENT_DEVICE_FATAL ||
        (ours && event.event_type == IBV_EVENT_PORT_ERR)) {
      down = true;
    } else if (ours && event.event_type == IBV_EVENT_PORT_ACTIVE) {
      down = false;
      ups_.fetch_add(1, std::memory_order_relaxed);
    }
    api_->AckAsyncEvent(&event);
  }
  if (down) downs_.fetch_add(1, std::memory_order_relaxed);
}

std::string DevicePort::StateNow() const {
  ibv_port_attr now = {};
  if (const int error = api_->QueryPort(context(), port_, &now); error != 0) {
    return absl::StrCat("unknown (", std::strerror(error), ")");
  }
  return absl::StrCat(StateName(now.state));
}

}  // namespace railhead::transport::verbs
