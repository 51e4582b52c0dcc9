// SPDX-License-Identifier: Apache-2.0
//
// Finds the process that listens at a port of this host, for messages.
#ifndef RAILHEAD_RUNTIME_NET_PORT_OWNER_H_
#define RAILHEAD_RUNTIME_NET_PORT_OWNER_H_

#include <cstdint>
#include <string>

namespace railhead::net {

// Returns "process 12 (python)", or "a process of user 1000" if /proc does not show it to this one,
// or "another process" if /proc does not show the socket either. Reads /proc under `root`.
std::string OwnerOfPort(const std::string& root, uint16_t port);

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_PORT_OWNER_H_
