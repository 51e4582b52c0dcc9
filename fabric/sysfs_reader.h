// SPDX-License-Identifier: Apache-2.0
//
// Reader of a node's inventory from sysfs and /dev. It needs no network interface or PCI link of an
// RDMA device, no special names, no umad or issm nodes, and only reads files.
#ifndef RAILHEAD_FABRIC_SYSFS_READER_H_
#define RAILHEAD_FABRIC_SYSFS_READER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/inventory.h"

namespace railhead::fabric {

// NVIDIA and AMD. Other vendors must be configured: Intel's integrated displays have the same
// classes as its GPUs.
inline std::vector<std::string> DefaultGpuVendors() { return {"10de", "1002"}; }

// Result of reading a PCI function's vital product data (VPD).
struct VpdRecord {
  std::optional<bool> manages_switch;  // whether it identifies NVLink switch management
  int failed_reads = 0;
};

// By PCI address. Reading VPD is slow, so periodic readers keep this cache.
using KnownVpd = std::map<std::string, VpdRecord>;

// A function whose VPD cannot be read this many times counts as one without.
inline constexpr int kMaxVpdReads = 3;

// Reads the inventory below `root`, the host's "/". Paths in the result are the host's.
//
// Health covers faults independent of the pod's network (hca_rules.h): an HCA is usable if it can
// be a rail, has an ACTIVE port and its uverbs node in /dev/infiniband; others stay in the list
// with the reason. Each port has one rail (ChooseRails). Captured trees may contain plain files for
// device nodes. A node without RDMA gives an empty list. Fails if the root has no /sys, or a class
// directory cannot be listed; with `known`, also if the VPD that decides what an HCA is cannot be
// read, because an HCA that is a rail in one scan and none in the next would move its neighbours.
//
// `reading` is called with the name of each HCA before it is read, and with "" before other files,
// because hung firmware blocks the read. Of HCAs in `hanging` (by name, as read before, or with
// their name alone) nothing is read but links and PCI attributes, which need no firmware, and
// the rest is old or missing (Stage::kHang).
absl::StatusOr<NodeInventory> ReadInventory(
    const std::string& root, const std::vector<std::string>& gpu_vendors = DefaultGpuVendors(),
    KnownVpd* known = nullptr, const std::function<void(const std::string&)>& reading = {},
    const std::map<std::string, Hca>& hanging = {});

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_SYSFS_READER_H_
