// SPDX-License-Identifier: Apache-2.0
//
// Network interface of an RDMA device, from sysfs.
#ifndef RAILHEAD_FABRIC_HCA_NETDEV_H_
#define RAILHEAD_FABRIC_HCA_NETDEV_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

// Returns true for a valid name of a device or interface: letters, digits, '_', '-' and '.', at
// most 63. Names come from an untrusted tree and become parts of paths.
bool IsSaneName(absl::string_view name);

// Returns the interface of a software device (rxe, siw) or an iWARP device; "" for others. An iWARP
// device does not name it, but has its Ethernet address as GID.
std::string ParentNetdev(const RootFiles& files, const std::string& hca);

// Returns the interface of a port (from 1); "" if it has none.
std::string NetdevOfPort(const RootFiles& files, const std::string& hca, int port);

// Returns true if the interface is administratively down, so that no cable is to blame.
bool IsSetDown(const RootFiles& files, const std::string& netdev);

// Returns the embedded switch's name of the interface's port: "p0", "pf0vf1"; "" if none.
std::string PortNameOf(const RootFiles& files, const std::string& netdev);

// Returns the interfaces of a bond, in its order; empty for other interfaces.
std::vector<std::string> SlavesOf(const RootFiles& files, const std::string& netdev);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_HCA_NETDEV_H_
