// SPDX-License-Identifier: Apache-2.0
//
// Sockets and the network interfaces by which their packets come and go. Used for TCP rails.
#ifndef RAILHEAD_RUNTIME_NET_BY_INTERFACE_H_
#define RAILHEAD_RUNTIME_NET_BY_INTERFACE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/net/address.h"

namespace railhead::net {

// Binds a socket to the network interface: it sends by that alone, and what arrives for it by
// another one is answered with a reset. Before Linux 5.7 this needs CAP_NET_RAW.
absl::Status BindToInterface(int fd, absl::string_view interface);
// Returns true if the socket is bound to an interface, or if its listener was.
bool IsBoundToInterface(int fd);
// Returns the index of the interface by which an accepted connection came in; 0 if unknown.
int ArrivalInterface(int fd);

// Sends one packet by the interface, so that its ARP request, a broadcast, announces `address` to
// the neighbours. They may know another interface of this machine for it, since Linux answers ARP
// requests for all of its addresses on each interface (arp_ignore=0). Does nothing for IPv6, where
// it does not.
void AnnounceAddress(const IpAddress& address, absl::string_view interface);

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_BY_INTERFACE_H_
