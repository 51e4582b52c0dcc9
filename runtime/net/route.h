// SPDX-License-Identifier: Apache-2.0
//
// Routes and interfaces of this network namespace, as the kernel reports them over netlink. No call
// needs a privilege or waits.
#ifndef RAILHEAD_RUNTIME_NET_ROUTE_H_
#define RAILHEAD_RUNTIME_NET_ROUTE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/net/address.h"

namespace railhead::net {

struct Route {
  int interface = 0;     // index of the interface by which packets leave
  bool local = false;    // the address belongs to this machine
  bool gateway = false;  // through a router: the address is not a neighbour
};

// Returns how the kernel sends packets from `local` to `remote`. With `interface`, only routes by
// the interface with this index count; returns an error if there is none.
absl::StatusOr<Route> FindRoute(const IpAddress& local, const IpAddress& remote, int interface = 0);

struct Interface {
  int index = 0;
  std::string name;
  std::string kind;  // of a virtual device: "dummy", "vrf", "veth", ...; "" for hardware
  bool loopback = false;
  bool running = false;  // it is up and has a carrier
  uint64_t sent_bytes = 0;
};

absl::StatusOr<Interface> ReadInterface(int index);
// Also by a label such as "eth0:1".
absl::StatusOr<Interface> ReadInterface(absl::string_view name);

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_ROUTE_H_
