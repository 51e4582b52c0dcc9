// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/device_list.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "device-plugin/content_hash.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

std::string DeviceId(const std::string& name, const std::string& pci_address) {
  constexpr size_t kMaxId = 63;
  constexpr size_t kHash = 8;
  const std::string place =
      pci_address.empty() ? "" : "-" + absl::StrReplaceAll(pci_address, {{":", "_"}, {".", "_"}});
  if (name.size() + place.size() <= kMaxId) return name + place;
  const size_t room = kMaxId - place.size() - 1 - kHash;
  return absl::StrCat(name.substr(0, room), "-", ContentHash(name).substr(0, kHash), place);
}

const Device* DeviceSnapshot::Find(absl::string_view id) const {
  for (const Device& device : devices) {
    if (device.id == id) return &device;
  }
  return nullptr;
}

bool DeviceBoard::Publish(fabric::NodeInventory inventory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  inventory = fabric::KeepVanished(current_->inventory, std::move(inventory));
  if (current_->generation > 0 && inventory == current_->inventory) return false;
  auto next = std::make_shared<DeviceSnapshot>();
  next->generation = current_->generation + 1;
  for (const fabric::Hca& hca : inventory.hcas) {
    if (hca.offered) next->devices.push_back(Device{DeviceId(hca.name, hca.pci_address), hca});
  }
  next->inventory = std::move(inventory);
  current_ = std::move(next);
  return true;
}

std::shared_ptr<const DeviceSnapshot> DeviceBoard::Current() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return current_;
}

}  // namespace railhead::device_plugin
