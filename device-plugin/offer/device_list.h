// SPDX-License-Identifier: Apache-2.0
//
// The devices that this node offers to kubelet under one resource's name.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_DEVICE_LIST_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_DEVICE_LIST_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// The name of an HCA for kubelet: "rxe0-0000_00_03_0". Unique on the node, at most 63 characters
// (long names are cut and told apart by a hash), the same after every restart. `slot` is a share of
// the HCA, from 0, or -1 where one container has it all: "rxe0-0000_00_03_0-s2".
std::string DeviceId(const std::string& name, const std::string& pci_address, int slot = -1);

// The id by which the node remembers the HCA (rail_map.h), else by its name and PCI address of now.
std::string DeviceId(const fabric::Hca& hca, int slot = -1);

// The id (without a slot) of a device that stands for all HCAs of its resource.
inline constexpr char kAllHcas[] = "all";

// Whether the id is that of such a device, or of a slot of it.
bool IsAllHcas(const std::string& id);

// The PCI address in the id of an HCA or a slot, or that is the id: "0000:00:03.0". "" where there
// is none.
std::string PciAddressIn(const std::string& id);

// The id of the whole HCA of which `id` is a slot; "" when it is not the id of a slot.
std::string WithoutSlot(const std::string& id);

// The id of the whole HCA: `id` itself, or what it is a slot of.
std::string WholeHca(const std::string& id);

struct Device {
  std::string id;
  fabric::Hca hca;                    // of one that stands for several: as much as is true of all
  std::vector<fabric::Hca> all = {};  // those that it stands for; empty: hca alone

  bool operator==(const Device&) const = default;
};

// One state of the node. Never changed once published.
struct DeviceSnapshot {
  uint64_t generation = 0;  // grows with every change; 0 before the first inventory
  fabric::NodeInventory inventory;
  std::vector<Device> devices;  // in rail order; an HCA that is shared has one for each slot
  // Ids of slots whose containers have got another HCA, to that (whole) HCA; see late_binding.h.
  std::map<std::string, std::string> bound = {};

  // The device of that id, or null.
  const Device* Find(absl::string_view id) const;

  // The HCA of that (whole) id, or at that PCI address; null where there is none.
  const fabric::Hca* FindHca(absl::string_view id) const;

  // Whether the container that has the device is well: what it is bound to counts.
  bool Healthy(const Device& device) const;
};

// Holds the latest snapshot. Thread-safe.
class DeviceBoard {
 public:
  // Returns true when that made a new snapshot.
  bool Publish(fabric::NodeInventory inventory, std::vector<Device> devices,
               std::map<std::string, std::string> bound = {});

  // Never null.
  std::shared_ptr<const DeviceSnapshot> Current() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const DeviceSnapshot> current_ = std::make_shared<const DeviceSnapshot>();
};

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_DEVICE_LIST_H_
