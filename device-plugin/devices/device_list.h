// SPDX-License-Identifier: Apache-2.0
//
// Devices of one resource, as this node offers them to kubelet.
#ifndef RAILHEAD_DEVICE_PLUGIN_DEVICES_DEVICE_LIST_H_
#define RAILHEAD_DEVICE_PLUGIN_DEVICES_DEVICE_LIST_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// Returns an HCA's device id: "rxe0-0000_00_03_0". Unique on the node, at most 63 characters (long
// names are cut and distinguished by a hash), and stable over restarts. `slot` is a share of the
// HCA, from 0, or -1 for the whole HCA: "rxe0-0000_00_03_0-s2".
std::string DeviceId(const std::string& name, const std::string& pci_address, int slot = -1);

// Returns the id stored in the rail map (rail_map.h), else one of the HCA's current name and PCI
// address.
std::string DeviceId(const fabric::Hca& hca, int slot = -1);

// Id (without slot) of a device that stands for all HCAs of its resource.
inline constexpr char kAllHcas[] = "all";

// Returns true if the id is that of such a device, or of a slot of it.
bool IsAllHcas(const std::string& id);

// Returns the PCI address in the id of an HCA or slot, or the id itself if it is one:
// "0000:00:03.0"; else "".
std::string PciAddressIn(const std::string& id);

// Returns the id of the whole HCA if `id` is a slot of it; else "".
std::string WithoutSlot(const std::string& id);

// Returns the id of the whole HCA: of a slot, or `id` itself.
std::string WholeHca(const std::string& id);

struct Device {
  std::string id;
  fabric::Hca hca;  // of a device that stands for several: the properties they share
  std::vector<fabric::Hca> all = {};  // HCAs that it stands for; empty: only `hca`

  bool operator==(const Device&) const = default;
};

// One state of the node. Immutable after it is published.
struct DeviceSnapshot {
  uint64_t generation = 0;  // increases with every change; 0 before the first inventory
  fabric::NodeInventory inventory;
  std::vector<Device> devices;  // in rail order; a shared HCA has one per slot
  // Ids of slots whose containers got another HCA, with that (whole) HCA; see late_binding.h.
  std::map<std::string, std::string> bound = {};

  // Returns the device with that id, or null.
  const Device* Find(absl::string_view id) const;

  // Returns the HCA with that (whole) id or PCI address, or null.
  const fabric::Hca* FindHca(absl::string_view id) const;

  // Returns the health of the HCA that the device's container really has (see `bound`).
  bool Healthy(const Device& device) const;
};

// Holds the latest snapshot. Thread-safe. Used by ResourcePlugin and MetricsPage.
class DeviceBoard {
 public:
  // Returns true if the snapshot changed.
  bool Publish(fabric::NodeInventory inventory, std::vector<Device> devices,
               std::map<std::string, std::string> bound = {});

  // Never null.
  std::shared_ptr<const DeviceSnapshot> Current() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const DeviceSnapshot> current_ = std::make_shared<const DeviceSnapshot>();
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_DEVICES_DEVICE_LIST_H_
