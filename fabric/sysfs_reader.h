// SPDX-License-Identifier: Apache-2.0
//
// Reads a node's inventory from sysfs and /dev. Needs neither a network interface nor a PCI link of
// an RDMA device, nor names of a certain form, nor umad and issm nodes, and makes no kernel call
// but reading files.
#ifndef RAILHEAD_FABRIC_SYSFS_READER_H_
#define RAILHEAD_FABRIC_SYSFS_READER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/inventory.h"

namespace railhead::fabric {

// NVIDIA and AMD. Others are for a configuration to name: Intel's integrated displays have the same
// classes as its GPUs.
inline std::vector<std::string> DefaultGpuVendors() { return {"10de", "1002"}; }

// PCI addresses to whether their vital product data says that they manage NVLink switches: reading
// it takes a while, so that who reads the inventory again and again keeps this.
using KnownVpd = std::map<std::string, bool>;

// `root` stands for the host's "/". Paths in the result are the host's, without the root.
//
// HCAs are judged by what holds however pods use them (hca_rules.h): usable is one that can be a
// rail, with an ACTIVE port and its uverbs node in /dev/infiniband; any other stays in the list
// with the reason. Rails are one for each port (ChooseRails). A captured tree may hold a plain file
// for a device node (most tools that copy trees cannot make devices). A node without RDMA gives an
// empty list. Fails when the root holds no /sys, or when a directory of classes cannot be listed.
// `reading` is told the name of each HCA before it is read: a NIC whose firmware hangs holds it up.
absl::StatusOr<NodeInventory> ReadInventory(
    const std::string& root, const std::vector<std::string>& gpu_vendors = DefaultGpuVendors(),
    KnownVpd* known = nullptr, const std::function<void(const std::string&)>& reading = {});

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_SYSFS_READER_H_
