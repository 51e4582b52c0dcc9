// SPDX-License-Identifier: Apache-2.0
//
// The network interface of an RDMA device, from sysfs.
#ifndef RAILHEAD_FABRIC_HCA_NETDEV_H_
#define RAILHEAD_FABRIC_HCA_NETDEV_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fabric/root_files.h"

namespace railhead::fabric {

// Whether a device or an interface may have this name: letters, digits, '_', '-' and '.', at most
// 63 of them. Names come from a tree that may be hostile, and become parts of paths.
bool IsSaneName(absl::string_view name);

// The interface that a software device (rxe, siw) runs on, or one that is iWARP; "" for any other
// device. One that is iWARP does not name it, but has its Ethernet address as GID.
std::string ParentNetdev(const RootFiles& files, const std::string& hca);

// The interface of one port; "" when it has none. Ports count from 1.
std::string NetdevOfPort(const RootFiles& files, const std::string& hca, int port);

// Whether the interface was set down by its administrator, so that no cable is to blame.
bool IsSetDown(const RootFiles& files, const std::string& netdev);

// What an embedded switch calls the interface's port: "p0", "pf0vf1"; "" where there is none.
std::string PortNameOf(const RootFiles& files, const std::string& netdev);

// The interfaces of a bond, in its order; empty for any other interface.
std::vector<std::string> SlavesOf(const RootFiles& files, const std::string& netdev);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_HCA_NETDEV_H_
