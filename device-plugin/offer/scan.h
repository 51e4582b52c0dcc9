// SPDX-License-Identifier: Apache-2.0
//
// One scan of the node: everything read from sysfs and /proc at one time. Plain values. Used by
// Scanner and NextState.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_SCAN_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_SCAN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/gpu_direct.h"
#include "fabric/inventory.h"
#include "fabric/sysfs_reader.h"

namespace railhead::device_plugin {

struct Scan {
  fabric::NodeInventory inventory;
  // Counters of each HCA's data port, by HCA name, if the port has them.
  std::map<std::string, uint64_t> link_downs;
  std::map<std::string, uint64_t> symbol_errors;
  std::optional<fabric::GpuDirect> gpu_direct;  // if the node has GPUs
  // UUID to PCI address of NVIDIA GPUs; see fabric/gpu_uuids.h.
  std::map<std::string, std::string> gpu_uuids;
  // The kernel's RDMA namespace mode: "shared", "exclusive", or "" if unknown.
  std::string rdma_namespaces;

  bool operator==(const Scan&) const = default;
};

// Name of the GPU driver's files among what may hang. Not a name of an HCA.
inline constexpr char kGpuDriver[] = "/proc/driver/nvidia";

struct ScanWish {
  std::string root;       // root of the host's /sys and /dev
  std::string proc_root;  // root of /proc/driver
  std::vector<std::string> gpu_vendors;
  // Names of HCAs, and kGpuDriver: reading their files does not end, so the scan does without.
  std::set<std::string> hanging = {};
  std::shared_ptr<const Scan> last = nullptr;  // null for the first scan
};

// Reads the node; blocks as long as its firmware and drivers do. `known` is kept between scans;
// `reading` is called before the files of an HCA are read, with its name; with kGpuDriver; and with
// "" before other files. Hanging HCAs (Stage::kHang) have the state from `last`.
absl::StatusOr<Scan> ReadScan(const ScanWish& wish, fabric::KnownVpd& known,
                              const std::function<void(const std::string&)>& reading);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_SCAN_H_
