// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/devices/device_list.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "device-plugin/devices/content_hash.h"
#include "fabric/inventory.h"
#include "fabric/pci_address.h"

namespace railhead::device_plugin {
namespace {

constexpr char kSlot[] = "-s";

}  // namespace

std::string DeviceId(const std::string& name, const std::string& pci_address, int slot) {
  constexpr size_t kMaxId = 63 - 5;  // kubelet's 63 without "-s127"
  constexpr size_t kHash = 8;
  const std::string place =
      pci_address.empty() ? "" : "-" + absl::StrReplaceAll(pci_address, {{":", "_"}, {".", "_"}});
  const std::string share = slot < 0 ? "" : absl::StrCat(kSlot, slot);
  if (name.size() + place.size() <= kMaxId) return absl::StrCat(name, place, share);
  const size_t room = kMaxId - place.size() - 1 - kHash;
  return absl::StrCat(name.substr(0, room), "-", ContentHash(name).substr(0, kHash), place, share);
}

std::string DeviceId(const fabric::Hca& hca, int slot) {
  if (hca.id.empty()) return DeviceId(hca.name, hca.pci_address, slot);
  return slot < 0 ? hca.id : absl::StrCat(hca.id, kSlot, slot);
}

bool IsAllHcas(const std::string& id) { return WholeHca(id) == kAllHcas; }

std::string PciAddressIn(const std::string& id) {
  std::string whole = WholeHca(id);
  if (fabric::ParsePciAddress(whole).has_value()) return whole;
  const size_t mark = whole.rfind('-');
  if (mark == std::string::npos) return "";
  // "0000_00_03_0"
  std::string address = absl::StrReplaceAll(whole.substr(mark + 1), {{"_", ":"}});
  const size_t function = address.rfind(':');
  if (function == std::string::npos) return "";
  address[function] = '.';
  return fabric::ParsePciAddress(address).has_value() ? address : "";
}

std::string WithoutSlot(const std::string& id) {
  const size_t mark = id.rfind(kSlot);
  int slot = 0;
  if (mark == std::string::npos || !absl::SimpleAtoi(id.substr(mark + sizeof(kSlot) - 1), &slot)) {
    return "";
  }
  return id.substr(0, mark);
}

std::string WholeHca(const std::string& id) {
  std::string whole = WithoutSlot(id);
  return whole.empty() ? id : whole;
}

const Device* DeviceSnapshot::Find(absl::string_view id) const {
  for (const Device& device : devices) {
    if (device.id == id) return &device;
  }
  return nullptr;
}

const fabric::Hca* DeviceSnapshot::FindHca(absl::string_view id) const {
  for (const fabric::Hca& hca : inventory.hcas) {
    if (DeviceId(hca) == id) return &hca;
  }
  if (!fabric::ParsePciAddress(id).has_value()) return nullptr;
  const auto found =
      std::find_if(inventory.hcas.begin(), inventory.hcas.end(), [id](const fabric::Hca& hca) {
        return hca.offered && hca.part.empty() && hca.pci_address == id;
      });
  return found == inventory.hcas.end() ? nullptr : &*found;
}

bool DeviceSnapshot::Healthy(const Device& device) const {
  const auto found = bound.find(device.id);
  if (found == bound.end()) return device.hca.health.usable();
  const fabric::Hca* own = FindHca(WholeHca(device.id));
  // Unhealthy although its HCA is usable: kubelet must not allocate the slot again.
  if (!device.hca.health.usable() && own != nullptr && own->health.usable()) return false;
  const fabric::Hca* hca = FindHca(found->second);
  return hca != nullptr && hca->health.usable();
}

bool DeviceBoard::Publish(fabric::NodeInventory inventory, std::vector<Device> devices,
                          std::map<std::string, std::string> bound) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (current_->generation > 0 && inventory == current_->inventory &&
      devices == current_->devices && bound == current_->bound) {
    return false;
  }
  auto next = std::make_shared<DeviceSnapshot>();
  next->generation = current_->generation + 1;
  next->inventory = std::move(inventory);
  next->devices = std::move(devices);
  next->bound = std::move(bound);
  current_ = std::move(next);
  return true;
}

std::shared_ptr<const DeviceSnapshot> DeviceBoard::Current() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return current_;
}

}  // namespace railhead::device_plugin
