// SPDX-License-Identifier: Apache-2.0
//
// Reads a node's inventory from sysfs and /dev. Needs neither a network interface nor a PCI link of
// an RDMA device, nor names of a certain form, nor umad and issm nodes, and makes no kernel call
// but reading files.
#ifndef RAILHEAD_FABRIC_SYSFS_READER_H_
#define RAILHEAD_FABRIC_SYSFS_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/inventory.h"

namespace railhead::fabric {

// NVIDIA and AMD. Others are for a configuration to name: Intel's integrated displays have the same
// classes as its GPUs.
inline std::vector<std::string> DefaultGpuVendors() { return {"10de", "1002"}; }

// `root` stands for the host's "/". Paths in the result are the host's, without the root.
//
// An HCA is usable when a port is ACTIVE and its uverbs node is in /dev/infiniband; any other stays
// in the list with the reason. A captured tree may hold a plain file for a device node (most tools
// that copy trees cannot make devices). A node without RDMA gives an empty list. Fails when the
// root holds no /sys, or when a directory of classes cannot be listed.
absl::StatusOr<NodeInventory> ReadInventory(
    const std::string& root, const std::vector<std::string>& gpu_vendors = DefaultGpuVendors());

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_SYSFS_READER_H_
