// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/tcp_rail.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/transport/connect/rail_interface.h"

namespace railhead::comm {

TcpRail FindTcpRail(const std::string& interface) {
  const net::InterfaceState found = net::FindInterface(interface);
  TcpRail rail{interface, true, net::MostReachable(found.addresses)};
  if (!found.exists) {
    rail.unknown = true;
    rail.trouble = std::string(net::AddressOfInterface(interface).status().message());
  } else if (!found.up) {
    rail.trouble = absl::StrCat("interface '", interface, "' is down");
  } else if (!rail.address.has_value()) {
    rail.trouble = absl::StrCat("interface '", interface, "' has no IP address");
  }
  return rail;
}

absl::StatusOr<std::shared_ptr<transport::RailListener>> ListenerOf(const TcpRail& rail,
                                                                    const std::string& name,
                                                                    const Logger& log) {
  std::optional<net::IpAddress> address = rail.address;
  if (rail.named) {
    const std::vector<net::IpAddress> now = net::FindInterface(rail.interface).addresses;
    // An interface that is down may have lost its addresses, and mostly gets the same ones again.
    const bool stays =
        address.has_value() && (now.empty() || std::count(now.begin(), now.end(), *address) > 0);
    if (!stays) address = net::MostReachable(now);
  }
  if (!address.has_value()) {
    return absl::UnavailableError(
        rail.named ? absl::StrCat("interface '", rail.interface, "' has no IP address")
                   : "no interface is up with an IP address");
  }
  // Without a name any interface will do, as it does for the acceptors of RDMA rails.
  if (!rail.named) return transport::RailListener::Shared(*address);
  return transport::RailListener::Shared(*address, [&] {
    return std::make_unique<transport::RailInterface>(*address, rail.interface, name, log);
  });
}

}  // namespace railhead::comm
