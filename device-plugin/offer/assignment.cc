// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/assignment.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device-plugin/config/config.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/hca_health.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

using Held = std::map<std::string, std::set<std::string>>;

// Returns whether its PCI address alone identifies the HCA.
bool IsAloneAtItsAddress(const fabric::Hca& hca, const fabric::NodeInventory& inventory) {
  return !hca.pci_address.empty() && hca.part.empty() &&
         std::count_if(
             inventory.hcas.begin(), inventory.hcas.end(), [&hca](const fabric::Hca& other) {
               return other.offered && other.part.empty() && other.pci_address == hca.pci_address;
             }) == 1;
}

std::vector<Device> DevicesOf(const fabric::Hca& hca, const ResourceConfig& resource,
                              const fabric::NodeInventory& inventory) {
  if (resource.device_ids == DeviceIds::kPciAddress && IsAloneAtItsAddress(hca, inventory)) {
    return {{hca.pci_address, hca}};
  }
  std::vector<Device> devices;
  devices.reserve(static_cast<size_t>(resource.slots));
  for (int slot = 0; slot < resource.slots; ++slot) {
    devices.push_back({DeviceId(hca, resource.slots == 1 ? -1 : slot), hca});
  }
  return devices;
}

Device Unhealthy(Device device, const std::string& reason) {
  device.hca.health.Set(fabric::Stage::kAssignment, reason);
  return device;
}

// Returns one device, or one per slot, that stands for all these HCAs.
std::vector<Device> DevicesOfAll(const std::vector<fabric::Hca>& hcas, int slots) {
  if (hcas.empty()) return {};
  fabric::Hca whole;
  whole.name = kAllHcas;
  whole.id = kAllHcas;
  whole.rail = hcas.front().rail;
  std::map<fabric::Stage, std::vector<std::string>> troubles;
  for (const fabric::Hca& hca : hcas) {
    for (const auto& [stage, text] : hca.health.troubles()) {
      troubles[stage].push_back(absl::StrCat(hca.name, ": ", text));
    }
  }
  for (const auto& [stage, texts] : troubles) whole.health.Set(stage, absl::StrJoin(texts, "; "));
  std::vector<Device> devices;
  devices.reserve(static_cast<size_t>(slots));
  for (int slot = 0; slot < slots; ++slot) {
    devices.push_back({DeviceId(whole, slots == 1 ? -1 : slot), whole, hcas});
  }
  return devices;
}

// A device that a container holds although the configuration does not offer it (any longer).
struct Leftover {
  std::string resource;
  Device device;
};

// Returns whether the id means the HCA. The PCI address also matches ids of an earlier agent, from
// before the HCA was renamed.
bool Means(const std::string& id, const fabric::Hca& hca, const fabric::NodeInventory& inventory) {
  const std::string whole = WholeHca(id);
  if (id == DeviceId(hca) || whole == DeviceId(hca)) return true;
  return !hca.pci_address.empty() && PciAddressIn(whole) == hca.pci_address &&
         std::none_of(inventory.hcas.begin(), inventory.hcas.end(),
                      [&whole](const fabric::Hca& other) { return DeviceId(other) == whole; });
}

// Returns whether an id of `holder` that stands for all its HCAs includes this one, which now
// belongs to `resource`.
bool MeansAmongAll(const AgentConfig& config, const std::string& holder,
                   const std::string& resource) {
  const bool has_members = std::any_of(
      config.resources.begin(), config.resources.end(),
      [&holder](const ResourceConfig& one) { return one.all_hcas && one.name == holder; });
  // The members at that time are unknown.
  return !has_members || holder == resource;
}

std::vector<Leftover> LeftoversOf(const AgentConfig& config, const fabric::Hca& hca,
                                  const std::string& resource, const std::vector<Device>& wanted,
                                  const fabric::NodeInventory& inventory, const Held& held) {
  std::vector<Leftover> leftovers;
  for (const auto& [holder, ids] : held) {
    for (const std::string& id : ids) {
      if (IsAllHcas(id) ? !MeansAmongAll(config, holder, resource) : !Means(id, hca, inventory)) {
        continue;
      }
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
    if (!config.resources[r].per_rail) assigned[config.resources[r].name];
    for (const size_t i : shares[r]) owner[i] = &config.resources[r];
  }
  // Devices that stand for all HCAs of a resource, by the resource's name.
  std::map<std::string, std::vector<Device>> together;
  for (size_t r = 0; r < config.resources.size(); ++r) {
    if (!config.resources[r].all_hcas) continue;
    std::vector<fabric::Hca> hcas;
    for (const size_t i : shares[r]) hcas.push_back(inventory.hcas[i]);
    together[config.resources[r].name] = DevicesOfAll(hcas, config.resources[r].slots);
  }
  std::map<std::string, std::string> holders_of;         // of HCAs of these
  std::set<std::pair<std::string, std::string>> listed;  // leftovers, by resource and id
  for (size_t i = 0; i < inventory.hcas.size(); ++i) {
    const fabric::Hca& hca = inventory.hcas[i];
    std::vector<Device> wanted;
    const std::string resource = owner[i] == nullptr ? "" : OfferedName(*owner[i], hca.rail);
    const auto all = together.find(resource);
    if (all != together.end()) {
      wanted = all->second;
    } else if (owner[i] != nullptr) {
      wanted = DevicesOf(hca, *owner[i], inventory);
    }
    const std::vector<Leftover> leftovers =
        LeftoversOf(config, hca, resource, wanted, inventory, held);
    std::string holder;
    for (const Leftover& leftover : leftovers) {
      // A former name may mean any device of one function.
      if (listed.emplace(leftover.resource, leftover.device.id).second) {
        assigned[leftover.resource].push_back(Unhealthy(
            leftover.device, absl::StrCat("the configuration has changed and ",
                                          resource.empty() ? "no longer offers this HCA"
                                                           : "offers this HCA differently",
                                          "; its pod keeps it until the pod ends")));
      }
      // Slots of one resource can be held at the same time, in any number.
      const bool side_by_side = leftover.resource == resource && owner[i]->slots > 1 &&
                                !WithoutSlot(leftover.device.id).empty();
      if (!side_by_side) holder = leftover.resource;
    }
    if (all != together.end()) {
      if (!holder.empty()) holders_of.emplace(resource, absl::StrCat(hca.name, " as ", holder));
      continue;
    }
    for (Device& device : wanted) {
      if (!holder.empty()) {
        device =
            Unhealthy(std::move(device), absl::StrCat("a pod may still hold this HCA as ", holder,
                                                      " of the previous configuration"));
      }
      assigned[resource].push_back(std::move(device));
    }
  }
  for (auto& [resource, devices] : together) {
    const auto holder = holders_of.find(resource);
    for (Device& device : devices) {
      if (holder != holders_of.end()) {
        device = Unhealthy(std::move(device), absl::StrCat("a pod may still hold ", holder->second,
                                                           " of the previous configuration"));
      }
      assigned[resource].push_back(std::move(device));
    }
  }
  return assigned;
}

}  // namespace railhead::device_plugin
