// SPDX-License-Identifier: Apache-2.0
//
// One look at the node: everything that is read from its sysfs and /proc at once. Plain values.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_SCAN_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_SCAN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/gpu_direct.h"
#include "fabric/inventory.h"
#include "fabric/sysfs_reader.h"

namespace railhead::device_plugin {

struct Scan {
  fabric::NodeInventory inventory;
  // What the data port of each HCA has counted, by the HCA's name, where it counts that.
  std::map<std::string, uint64_t> link_downs;
  std::map<std::string, uint64_t> symbol_errors;
  std::optional<fabric::GpuDirect> gpu_direct;  // where the node has GPUs
  // How the kernel shows RDMA devices in network namespaces: "shared", "exclusive", or "" when it
  // does not say.
  std::string rdma_namespaces;

  bool operator==(const Scan&) const = default;
};

struct ScanWish {
  std::string root;       // where the host's /sys and /dev are
  std::string proc_root;  // where /proc/driver is
  std::vector<std::string> gpu_vendors;
};

// Takes as long as the node's firmware does. `known` is kept from one scan to the next; `reading`
// is told the name of each HCA before it is read.
absl::StatusOr<Scan> ReadScan(const ScanWish& wish, fabric::KnownVpd& known,
                              const std::function<void(const std::string&)>& reading);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_SCAN_H_
