// SPDX-License-Identifier: Apache-2.0
//
// The devices that this node offers to kubelet, made from an inventory.
#ifndef RAILHEAD_DEVICE_PLUGIN_DEVICE_LIST_H_
#define RAILHEAD_DEVICE_PLUGIN_DEVICE_LIST_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// The name of an HCA for kubelet: "rxe0-0000_00_03_0". Unique on the node, at most 63 characters
// (long names are cut and told apart by a hash), the same after every restart.
std::string DeviceId(const std::string& name, const std::string& pci_address);

struct Device {
  std::string id;
  fabric::Hca hca;
};

// One state of the node. Never changed once published.
struct DeviceSnapshot {
  uint64_t generation = 0;  // grows with every change; 0 before the first inventory
  fabric::NodeInventory inventory;
  std::vector<Device> devices;  // in rail order

  // The device of that id, or null.
  const Device* Find(absl::string_view id) const;
};

// Holds the latest snapshot. Thread-safe.
class DeviceBoard {
 public:
  // Takes an inventory that was just read. Devices that were known before and are missing from it
  // stay, unhealthy. Returns true when that made a new snapshot.
  bool Publish(fabric::NodeInventory inventory);

  // Never null.
  std::shared_ptr<const DeviceSnapshot> Current() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const DeviceSnapshot> current_ = std::make_shared<const DeviceSnapshot>();
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_DEVICE_LIST_H_
