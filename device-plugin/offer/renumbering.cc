// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/renumbering.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/hca_health.h"

namespace railhead::device_plugin {
namespace {

constexpr char kFix[] = "delete that pod, so that it is given devices again";

std::string Described(absl::string_view name, const std::vector<std::string>& nodes) {
  return absl::StrCat(name, " (", absl::StrJoin(nodes, ", "), ")");
}

std::string NameOf(const Grant& grant) {
  const ContainerDevices& holder = grant.holder;
  if (holder.pod.empty() && grant.pod_uid.empty()) return "a container of an unknown pod";
  if (holder.pod.empty()) return absl::StrCat("a container of the pod with uid ", grant.pod_uid);
  return absl::StrCat("container ", holder.container, " of pod ", holder.pod_namespace, "/",
                      holder.pod);
}

bool HasExactly(const std::vector<std::string>& held, const std::set<std::string>& ids) {
  return std::set<std::string>(held.begin(), held.end()) == ids;
}

// Returns whether the listed container holds all that was given.
bool Holds(const ContainerDevices& listed, const Grant& grant) {
  return std::all_of(grant.holder.devices.begin(), grant.holder.devices.end(),
                     [&listed](const auto& given) {
                       const auto held = listed.devices.find(given.first);
                       return held != listed.devices.end() &&
                              HasExactly(held->second, {given.second.begin(), given.second.end()});
                     });
}

// Returns the ids of whole HCAs that kubelet has allocated to the container.
std::set<std::string> GivenIds(const Grant& grant) {
  std::set<std::string> ids;
  for (const auto& [resource, held] : grant.holder.devices) {
    for (const std::string& id : held) ids.insert(WholeHca(id));
  }
  return ids;
}

// Returns the HCA that was given as this rail, or null if it is not known for certain. Its PCI
// function identifies it; one of several devices of a function, or without one, has an id of
// `given` or its name.
const fabric::Hca* FindGiven(const fabric::PodRail& rail, const std::set<std::string>& given,
                             const fabric::NodeInventory& inventory) {
  std::vector<const fabric::Hca*> there;
  std::vector<const fabric::Hca*> held;
  for (const fabric::Hca& hca : inventory.hcas) {
    if (hca.pci_address != rail.pci_address) continue;
    if (hca.offered) there.push_back(&hca);
    if (given.contains(DeviceId(hca))) held.push_back(&hca);
  }
  if (held.size() == 1) return held.front();
  for (const fabric::Hca* hca : held.empty() ? there : held) {
    if (hca->name == rail.device) return hca;
  }
  const bool alone = held.empty() && there.size() == 1 && !rail.pci_address.empty();
  return alone ? there.front() : nullptr;
}

// Returns whether the HCA may be one that was given, under another name, or with another state:
// another stage reports that.
bool MayBeGiven(const fabric::Hca& hca, const Grant& grant) {
  return (hca.health.Has(fabric::Stage::kIdentity) || hca.health.Has(fabric::Stage::kHang)) &&
         std::any_of(grant.rails.begin(), grant.rails.end(), [&hca](const fabric::PodRail& rail) {
           return rail.pci_address == hca.pci_address;
         });
}

bool AnyIn(const std::vector<std::string>& nodes, const std::set<std::string>& given) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&given](const std::string& node) { return given.contains(node); });
}

bool AllIn(const std::vector<std::string>& nodes, const std::set<std::string>& given) {
  return std::all_of(nodes.begin(), nodes.end(),
                     [&given](const std::string& node) { return given.contains(node); });
}

}  // namespace

std::vector<Grant> GrantsIn(const std::vector<CheckpointEntry>& checkpoint) {
  std::map<std::pair<std::string, std::string>, Grant> by_container;
  for (const CheckpointEntry& entry : checkpoint) {
    if (entry.rails_file.empty()) continue;
    Grant& grant = by_container[{entry.pod_uid, entry.container}];
    grant.pod_uid = entry.pod_uid;
    grant.holder.container = entry.container;
    grant.holder.devices[entry.resource] = {entry.ids.begin(), entry.ids.end()};
    grant.rails_files.insert(entry.rails_file);
  }
  std::vector<Grant> grants;
  grants.reserve(by_container.size());
  for (auto& [container, grant] : by_container) grants.push_back(std::move(grant));
  return grants;
}

std::vector<Grant> GrantsOf(const std::vector<Grant>& grants, const std::string& resource,
                            const std::set<std::string>& ids) {
  std::vector<Grant> found;
  for (const Grant& grant : grants) {
    const auto held = grant.holder.devices.find(resource);
    if (held != grant.holder.devices.end() && HasExactly(held->second, ids)) {
      found.push_back(grant);
    }
  }
  return found;
}

std::vector<Grant> LiveGrants(std::vector<Grant> grants,
                              const std::vector<ContainerDevices>& listed, bool complete) {
  std::vector<Grant> live;
  for (Grant& grant : grants) {
    const auto holder = std::find_if(
        listed.begin(), listed.end(),
        [&grant](const ContainerDevices& container) { return Holds(container, grant); });
    if (holder != listed.end()) {
      grant.holder = *holder;
    } else if (complete) {
      continue;
    }
    live.push_back(std::move(grant));
  }
  return live;
}

std::optional<Renumbering> FindRenumbering(const Grant& grant,
                                           const fabric::NodeInventory& inventory) {
  std::set<std::string> nodes;  // that the container can open
  std::map<const fabric::Hca*, const fabric::PodRail*> own;
  const std::set<std::string> ids = GivenIds(grant);
  for (const fabric::PodRail& rail : grant.rails) {
    nodes.insert(rail.char_devices.begin(), rail.char_devices.end());
    const fabric::Hca* hca = FindGiven(rail, ids, inventory);
    if (hca != nullptr) own[hca] = &rail;
  }
  Renumbering found{grant.holder, "", {}};
  std::vector<std::string> changed;
  std::vector<std::string> opened;
  for (const fabric::Hca& hca : inventory.hcas) {
    const auto given = own.find(&hca);
    if (given == own.end()) {
      if (!AnyIn(hca.char_devices, nodes) || MayBeGiven(hca, grant)) continue;
      opened.push_back(absl::StrCat("it can open ", Described(DeviceId(hca), hca.char_devices),
                                    ", which it was not given"));
      found.hcas[DeviceId(hca)] =
          absl::StrCat(NameOf(grant), " can open it, as it was given another HCA by ",
                       absl::StrJoin(hca.char_devices, ", "), "; ", kFix);
      continue;
    }
    const fabric::PodRail& rail = *given->second;
    const bool has_name_of_another =
        rail.device != hca.name && std::any_of(inventory.hcas.begin(), inventory.hcas.end(),
                                               [&rail](const fabric::Hca& other) {
                                                 return other.present && other.name == rail.device;
                                               });
    if (AllIn(hca.char_devices, nodes) && !has_name_of_another) continue;
    const std::string change = absl::StrCat("as ", Described(rail.device, rail.char_devices),
                                            ", and is now ", Described(hca.name, hca.char_devices));
    changed.push_back(absl::StrCat(DeviceId(hca), " was given ", change));
    found.hcas[DeviceId(hca)] = absl::StrCat(NameOf(grant), " was given it ", change, "; ", kFix);
  }
  if (found.hcas.empty()) return std::nullopt;
  changed.insert(changed.end(), opened.begin(), opened.end());
  found.message = absl::StrCat("device nodes have changed: ", absl::StrJoin(changed, "; "),
                               "; delete the pod, so that it is given devices again");
  return found;
}

std::vector<Renumbering> WithholdRenumbered(const std::vector<Grant>& grants,
                                            fabric::NodeInventory& inventory) {
  std::vector<Renumbering> all;
  for (const Grant& grant : grants) {
    std::optional<Renumbering> found = FindRenumbering(grant, inventory);
    if (found.has_value()) all.push_back(*std::move(found));
  }
  for (fabric::Hca& hca : inventory.hcas) {
    hca.health.Set(fabric::Stage::kRenumbering, "");
    for (const Renumbering& one : all) {
      const auto why = one.hcas.find(DeviceId(hca));
      if (why == one.hcas.end()) continue;
      hca.health.Set(fabric::Stage::kRenumbering, why->second);
      break;  // one at a time: the next remains when its pod is gone
    }
  }
  return all;
}

}  // namespace railhead::device_plugin
