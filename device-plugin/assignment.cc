// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/assignment.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device-plugin/config.h"
#include "device-plugin/device_list.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

using Held = std::map<std::string, std::set<std::string>>;

std::vector<Device> DevicesOf(const fabric::Hca& hca, int slots) {
  std::vector<Device> devices;
  devices.reserve(static_cast<size_t>(slots));
  for (int slot = 0; slot < slots; ++slot) {
    devices.push_back({DeviceId(hca, slots == 1 ? -1 : slot), hca});
  }
  return devices;
}

Device Unhealthy(Device device, const std::string& reason) {
  device.hca.usable = false;
  device.hca.reason =
      device.hca.reason.empty() ? reason : absl::StrCat(device.hca.reason, "; ", reason);
  return device;
}

// A device that a container holds though the configuration would not offer it (any more).
struct Leftover {
  std::string resource;
  Device device;
};

// Whether the id means the HCA. Also one under which an earlier agent knew it, before it was
// renamed: then the PCI address tells.
bool Means(const std::string& id, const fabric::Hca& hca, const fabric::NodeInventory& inventory) {
  const std::string whole = WholeHca(id);
  if (id == DeviceId(hca) || whole == DeviceId(hca)) return true;
  return !hca.pci_address.empty() && PciAddressIn(whole) == hca.pci_address &&
         std::none_of(inventory.hcas.begin(), inventory.hcas.end(),
                      [&whole](const fabric::Hca& other) { return DeviceId(other) == whole; });
}

std::vector<Leftover> LeftoversOf(const fabric::Hca& hca, const std::string& resource,
                                  const std::vector<Device>& wanted,
                                  const fabric::NodeInventory& inventory, const Held& held) {
  std::vector<Leftover> leftovers;
  for (const auto& [holder, ids] : held) {
    for (const std::string& id : ids) {
      if (!Means(id, hca, inventory)) continue;
      const bool offered = holder == resource &&
                           std::any_of(wanted.begin(), wanted.end(),
                                       [&id](const Device& device) { return device.id == id; });
      if (!offered) leftovers.push_back({holder, {id, hca}});
    }
  }
  return leftovers;
}

}  // namespace

std::map<std::string, std::vector<Device>> Assign(const AgentConfig& config,
                                                  const fabric::NodeInventory& inventory,
                                                  const Held& held) {
  std::map<std::string, std::vector<Device>> assigned;
  std::vector<const ResourceConfig*> owner(inventory.hcas.size(), nullptr);
  const std::vector<std::vector<size_t>> shares = ShareOut(config, inventory.hcas);
  for (size_t r = 0; r < config.resources.size(); ++r) {
    assigned[config.resources[r].name];
    for (const size_t i : shares[r]) owner[i] = &config.resources[r];
  }
  std::set<std::pair<std::string, std::string>> listed;  // leftovers, by resource and id
  for (size_t i = 0; i < inventory.hcas.size(); ++i) {
    const fabric::Hca& hca = inventory.hcas[i];
    std::vector<Device> wanted;
    if (owner[i] != nullptr) wanted = DevicesOf(hca, owner[i]->slots);
    const std::string resource = owner[i] == nullptr ? "" : owner[i]->name;
    const std::vector<Leftover> leftovers = LeftoversOf(hca, resource, wanted, inventory, held);
    std::string holder;
    for (const Leftover& leftover : leftovers) {
      // A former name may mean any of the devices of one function.
      if (listed.emplace(leftover.resource, leftover.device.id).second) {
        assigned[leftover.resource].push_back(Unhealthy(
            leftover.device, absl::StrCat("the configuration has changed and offers this HCA ",
                                          resource.empty() ? "no more" : "otherwise",
                                          "; it stays with its pod until that ends")));
      }
      // Slots of one resource may be held side by side, whatever their number.
      const bool side_by_side = leftover.resource == resource && owner[i]->slots > 1 &&
                                !WithoutSlot(leftover.device.id).empty();
      if (!side_by_side) holder = leftover.resource;
    }
    for (Device& device : wanted) {
      if (!holder.empty()) {
        device = Unhealthy(std::move(device),
                           absl::StrCat("a pod may still hold this HCA as ", holder,
                                        ", which is what the configuration said before"));
      }
      assigned[resource].push_back(std::move(device));
    }
  }
  return assigned;
}

}  // namespace railhead::device_plugin
