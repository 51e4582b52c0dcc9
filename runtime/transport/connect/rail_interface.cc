// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/connect/rail_interface.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/net/by_interface.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"

namespace railhead::transport {
namespace {

// Neighbours take one a second.
constexpr absl::Duration kBetweenAnnouncements = absl::Milliseconds(500);

absl::Status TryToBind(absl::string_view interface) {
  const net::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return net::ErrnoError("socket", errno);
  return net::BindToInterface(fd.get(), interface);
}

}  // namespace

bool IsNic(const net::Interface& interface) {
  return !interface.loopback && interface.kind != "dummy" && interface.kind != "vrf";
}

RailInterface::RailInterface(const net::IpAddress& address, absl::string_view interface,
                             std::string rail, Logger log)
    : address_(address), rail_(std::move(rail)), log_(std::move(log)) {
  absl::StatusOr<net::Interface> found = net::ReadInterface(interface);
  if (!found.ok()) return;
  interface_ = *std::move(found);
  is_nic_ = IsNic(interface_);
  shares_subnet_ = net::SharesSubnet(address);
  if (is_nic_) bindable_ = TryToBind(interface_.name);
}

net::Interface RailInterface::Present() const {
  // A driver that restarts makes a new one of the same name.
  return net::ReadInterface(interface_.name).value_or(net::Interface());
}

bool RailInterface::IsRouted(const net::IpAddress& remote, const net::Interface& present) const {
  const absl::StatusOr<net::Route> route = net::FindRoute(address_, remote);
  return !route.ok() || route->local || route->interface == present.index;
}

bool RailInterface::Insists(const net::IpAddress& remote, const net::Interface& present,
                            absl::Time now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!insistence_.Insists(remote.Bytes(), present.running, now)) return false;
  if (present.running && now >= next_announcement_) {
    next_announcement_ = now + kBetweenAnnouncements;
    net::AnnounceAddress(address_, interface_.name);
  }
  return true;
}

std::string RailInterface::ForDial(const net::IpAddress& remote, absl::Time now) {
  if (!binds()) return "";
  const net::Interface present = Present();
  if (IsRouted(remote, present)) return "";
  // Routes go with the carrier, and come back with it.
  if (present.running && !net::FindRoute(address_, remote, present.index).ok()) return "";
  return Insists(remote, present, now) ? interface_.name : "";
}

bool RailInterface::Keep(int accepted, absl::Time now) {
  if (!binds() || net::IsBoundToInterface(accepted)) return true;
  const absl::StatusOr<net::SocketAddress> remote = net::RemoteAddress(accepted);
  const int arrival = net::ArrivalInterface(accepted);
  if (!remote.ok() || arrival == 0) return true;
  const net::Interface present = Present();
  const absl::StatusOr<net::Route> route = net::FindRoute(address_, remote->address, present.index);
  if (arrival == present.index) {
    if (route.ok() && !IsRouted(remote->address, present)) {
      net::BindToInterface(accepted, interface_.name).IgnoreError();
    }
    return true;
  }
  // It came from a neighbour that has learnt the wrong interface, or else as it was routed: through
  // a router, or from this machine.
  const bool from_here = net::ReadInterface(arrival).value_or(net::Interface()).loopback;
  const bool learns = address_.is_v4() && !from_here && !(route.ok() && route->gateway);
  return !learns || !Insists(remote->address, present, now);
}

void RailInterface::Connected(int fd, const net::IpAddress& remote) {
  if (interface_.index == 0) return;
  if (net::IsBoundToInterface(fd)) {
    const std::lock_guard<std::mutex> lock(mutex_);
    insistence_.Works(remote.Bytes());
    return;
  }
  const absl::StatusOr<net::Route> route = net::FindRoute(address_, remote);
  if (!route.ok() || route->local || route->interface == Present().index) return;
  Report(remote, route->interface);
}

void RailInterface::Report(const net::IpAddress& remote, int other) {
  const absl::StatusOr<net::Interface> its = net::ReadInterface(other);
  const std::string by = its.ok() ? its->name : absl::StrCat("interface ", other);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!leaves_by_.empty()) return;
  leaves_by_ = by;
  const std::string text = absl::StrCat(rail_, ": its bytes to ", remote.ToString(), " leave by ",
                                        by, ", not by ", interface_.name, ": ");
  if (!is_nic_) {
    log_.Info(absl::StrCat(text, "its address is on a ",
                           interface_.loopback ? "loopback" : interface_.kind, " device"));
    return;
  }
  const std::string cause =
      !bindable_.ok() ? absl::StrCat("sockets cannot be bound to it (", bindable_.message(),
                                     absl::IsPermissionDenied(bindable_)
                                         ? "; Linux before 5.7 wants CAP_NET_RAW for it)"
                                         : ")")
      : net::FindRoute(address_, remote, Present().index).ok()
          ? absl::StrCat("no connection by ", interface_.name, " within ",
                         absl::FormatDuration(Insistence::kPatience))
          : absl::StrCat("no route leads there by ", interface_.name);
  trouble_ = absl::StrCat(text, cause);
  log_.Warn(absl::StrCat(trouble_, "; ", Advice()));
}

std::string RailInterface::Advice() const {
  const std::string address = address_.ToString();
  const char* const ip = address_.is_v4() ? "ip" : "ip -6";
  return absl::StrCat(
      shares_subnet_ ? "another interface has an address in the same subnet, and Linux routes by "
                       "destination: give each rail a separate subnet, or route by source"
                     : "route by source",
      ": `", ip, " rule add from ", address, " table ", 100 + interface_.index, "; ", ip,
      " route add SUBNET dev ", interface_.name, " src ", address, " table ",
      100 + interface_.index, "`",
      address_.is_v4() ? ", with net.ipv4.conf.all.arp_ignore=1, arp_announce=2 and rp_filter=2"
                       : "");
}

std::string RailInterface::leaves_by() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return leaves_by_;
}

std::string RailInterface::trouble() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return trouble_;
}

}  // namespace railhead::transport
