// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/holdings/holdings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "device-plugin/grant/allocation_record.h"
#include "fabric/inventory.h"
#include "fabric/pod_rails.h"

namespace railhead::device_plugin {
namespace {

bool ListsOwnPod(const Evidence& evidence) {
  const auto& [space, name] = evidence.own_pod;
  if (name.empty()) return true;
  return std::any_of(evidence.listed->pods.begin(), evidence.listed->pods.end(),
                     [&space = space, &name = name](const PodName& pod) {
                       return pod.second == name && (space.empty() || pod.first == space);
                     });
}

// Returns whether kubelet lists all containers of its checkpoint.
bool ListsAllWrittenDown(const Evidence& evidence) {
  if (!evidence.checkpoint.has_value()) return false;
  std::map<std::string, std::set<std::string>> listed = HeldByResource(evidence.listed->containers);
  for (const auto& [resource, ids] : evidence.seen) listed[resource].insert(ids.begin(), ids.end());
  return std::all_of(
      evidence.checkpoint->begin(), evidence.checkpoint->end(), [&](const CheckpointEntry& entry) {
        const auto ids = listed.find(entry.resource);
        return entry.ids.empty() ||
               (ids != listed.end() && std::includes(ids->second.begin(), ids->second.end(),
                                                     entry.ids.begin(), entry.ids.end()));
      });
}

// Returns the HCAs of devices that an earlier version of the agent allocated, by the files that
// kubelet's checkpoint names.
Members MembersInFiles(const Evidence& evidence) {
  Members members;
  if (!evidence.checkpoint.has_value()) return members;
  for (const CheckpointEntry& entry : *evidence.checkpoint) {
    const auto rails = evidence.rails.find(entry.rails_file);
    if (rails == evidence.rails.end()) continue;
    for (const std::string& id : entry.ids) {
      if (!IsAllHcas(id)) continue;
      for (const fabric::PodRail& rail : rails->second.rails) {
        members[entry.resource][id].insert(rail.id.empty() ? DeviceId(rail.device, rail.pci_address)
                                                           : rail.id);
      }
    }
  }
  return members;
}

}  // namespace

void Hold(const std::string& resource, const std::set<std::string>& ids, const Members& members,
          Holdings& holdings) {
  holdings.by_resource[resource].insert(ids.begin(), ids.end());
  const auto known = members.find(resource);
  if (known == members.end()) return;
  for (const auto& [id, hcas] : known->second) {
    if (ids.contains(id)) holdings.members[resource][id].insert(hcas.begin(), hcas.end());
  }
}

Holdings Weigh(const Holdings& before, const Evidence& evidence) {
  std::vector<ContainerDevices> containers;
  if (evidence.listed.has_value()) containers = evidence.listed->containers;
  Holdings holdings;
  holdings.complete = evidence.listed.has_value() && ListsOwnPod(evidence) &&
                      (!evidence.young || ListsAllWrittenDown(evidence));
  std::vector<CheckpointEntry> entries =
      evidence.checkpoint.value_or(std::vector<CheckpointEntry>());
  if (holdings.complete) {
    entries = EntriesInUse(entries, *evidence.listed, evidence.running, evidence.pods);
  }
  for (const CheckpointEntry& entry : entries) {
    containers.push_back({"", "", "", {{entry.resource, {entry.ids.begin(), entry.ids.end()}}}});
  }
  if (!holdings.complete) {
    for (const AllocationRecord& record : evidence.records) {
      containers.push_back({"", "", "", {{record.resource, record.ids}}});
    }
    holdings.by_resource = before.by_resource;
    holdings.members = before.members;
    holdings.bound = before.bound;
  }
  Members members = MembersOf(evidence.records);
  // Records precede.
  for (auto& [resource, files] : MembersInFiles(evidence)) members[resource].merge(files);
  for (const auto& [resource, ids] : HeldByResource(containers)) {
    Hold(resource, ids, members, holdings);
  }
  for (const auto& [resource, ids] : HeldByResource(AsBound(evidence.records, containers))) {
    holdings.by_resource[resource].insert(ids.begin(), ids.end());
  }
  const std::vector<ContainerDevices> bound =
      WithMembers(AsBound(evidence.records, std::move(containers)), members);
  for (const auto& [resource, ids] : HeldByResource(bound)) {
    holdings.bound.insert(ids.begin(), ids.end());
  }
  return holdings;
}

std::string UidOf(const ContainerDevices& container,
                  const std::vector<CheckpointEntry>& checkpoint) {
  for (const auto& [resource, ids] : container.devices) {
    const std::set<std::string> wanted(ids.begin(), ids.end());
    std::set<std::string> uids;
    for (const CheckpointEntry& entry : checkpoint) {
      if (entry.resource == resource && entry.ids == wanted) uids.insert(entry.pod_uid);
    }
    if (uids.size() == 1) return *uids.begin();
  }
  return "";
}

void LearnPods(const std::vector<CheckpointEntry>& checkpoint, const std::optional<PodList>& listed,
               const RunningPods& running, PodsByUid& pods) {
  std::set<std::string> uids;
  for (const CheckpointEntry& entry : checkpoint) uids.insert(entry.pod_uid);
  std::erase_if(pods, [&uids](const auto& pod) { return !uids.contains(pod.first); });
  if (running.has_value()) {
    for (const std::string& uid : uids) {
      if (running->contains(uid)) pods[uid].has_run = true;
    }
  }
  if (!listed.has_value()) return;
  for (const ContainerDevices& container : listed->containers) {
    const std::string uid = UidOf(container, checkpoint);
    if (!uid.empty()) pods[uid].name = {container.pod_namespace, container.pod};
  }
}

std::vector<CheckpointEntry> EntriesInUse(const std::vector<CheckpointEntry>& checkpoint,
                                          const PodList& listed, const RunningPods& running,
                                          const PodsByUid& pods) {
  std::vector<CheckpointEntry> in_use;
  for (const CheckpointEntry& entry : checkpoint) {
    const auto known = pods.find(entry.pod_uid);
    if (known != pods.end()) {
      const KnownPod& pod = known->second;
      const bool left_list = !pod.name.second.empty() && !listed.pods.contains(pod.name);
      const bool left_cgroups =
          pod.has_run && running.has_value() && !running->contains(entry.pod_uid);
      if (left_list || left_cgroups) continue;
    }
    in_use.push_back(entry);
  }
  return in_use;
}

std::set<std::string> HeldHcas(const Holdings& holdings) {
  std::set<std::string> hcas;
  for (const auto& [resource, ids] : holdings.by_resource) {
    const auto known = holdings.members.find(resource);
    for (const std::string& id : ids) {
      const bool stands_for = known != holdings.members.end() && known->second.contains(id);
      if (stands_for) {
        hcas.insert(known->second.at(id).begin(), known->second.at(id).end());
      } else {
        hcas.insert(WholeHca(id));
      }
    }
  }
  return hcas;
}

std::set<int> RailsInUse(const Holdings& holdings, const fabric::NodeInventory& inventory) {
  std::set<int> rails;
  for (const fabric::Hca& hca : inventory.hcas) {
    // A share has a different id.
    const bool held = holdings.bound.contains(kAllHcas) || Holds(holdings.bound, hca);
    if (hca.offered && held) rails.insert(hca.rail);
  }
  return rails;
}

bool Holds(const std::set<std::string>& ids, const fabric::Hca& hca) {
  return ids.contains(DeviceId(hca)) || (hca.part.empty() && ids.contains(hca.pci_address));
}

bool MayBeAmong(const std::set<std::string>& ids, const std::string& name,
                const std::string& pci_address) {
  return ids.contains(kAllHcas) || std::any_of(ids.begin(), ids.end(), [&](const std::string& id) {
           // Without a PCI function, only the name distinguishes them.
           return id == DeviceId(name, pci_address) || PciAddressIn(id) == pci_address;
         });
}

}  // namespace railhead::device_plugin
