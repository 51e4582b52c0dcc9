// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/holdings/holdings.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "device-plugin/grant/allocation_record.h"
#include "fabric/inventory.h"

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

}  // namespace

Holdings Weigh(const Holdings& before, const Evidence& evidence) {
  std::vector<ContainerDevices> containers;
  if (evidence.listed.has_value()) containers = evidence.listed->containers;
  Holdings holdings;
  holdings.complete = evidence.listed.has_value() && ListsOwnPod(evidence) &&
                      (!evidence.young || ListsAllWrittenDown(evidence));
  if (!holdings.complete) {
    if (evidence.checkpoint.has_value()) {
      for (const CheckpointEntry& entry : *evidence.checkpoint) {
        containers.push_back(
            {"", "", "", {{entry.resource, {entry.ids.begin(), entry.ids.end()}}}});
      }
    }
    for (const AllocationRecord& record : evidence.records) {
      containers.push_back({"", "", "", {{record.resource, record.ids}}});
    }
    holdings.by_resource = before.by_resource;
    holdings.bound = before.bound;
  }
  for (const auto& [resource, ids] : HeldByResource(containers)) {
    holdings.by_resource[resource].insert(ids.begin(), ids.end());
  }
  for (const auto& [resource, ids] : HeldByResource(AsBound(evidence.records, containers))) {
    holdings.by_resource[resource].insert(ids.begin(), ids.end());
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

void LearnPods(const std::vector<CheckpointEntry>& checkpoint, const PodList& listed,
               PodsByUid& pods) {
  for (const ContainerDevices& container : listed.containers) {
    const std::string uid = UidOf(container, checkpoint);
    if (!uid.empty()) pods[uid] = {container.pod_namespace, container.pod};
  }
  std::set<std::string> uids;
  for (const CheckpointEntry& entry : checkpoint) uids.insert(entry.pod_uid);
  std::erase_if(pods, [&uids](const auto& pod) { return !uids.contains(pod.first); });
}

std::vector<CheckpointEntry> EntriesInUse(const std::vector<CheckpointEntry>& checkpoint,
                                          const PodList& listed, const PodsByUid& pods) {
  std::vector<CheckpointEntry> in_use;
  for (const CheckpointEntry& entry : checkpoint) {
    const auto pod = pods.find(entry.pod_uid);
    if (pod == pods.end() || listed.pods.contains(pod->second)) in_use.push_back(entry);
  }
  return in_use;
}

std::set<std::string> HeldHcas(const Holdings& holdings) {
  std::set<std::string> hcas;
  for (const auto& [resource, ids] : holdings.by_resource) {
    for (const std::string& id : ids) hcas.insert(WholeHca(id));
  }
  return hcas;
}

std::set<int> RailsInUse(const Holdings& holdings, const fabric::NodeInventory& inventory,
                         const std::map<std::string, std::vector<Device>>& by_resource) {
  std::set<int> rails;
  for (const fabric::Hca& hca : inventory.hcas) {
    // A share has a different id.
    if (hca.offered && Holds(holdings.bound, hca)) rails.insert(hca.rail);
  }
  for (const auto& [resource, devices] : by_resource) {
    const auto held = holdings.by_resource.find(resource);
    if (held == holdings.by_resource.end() || !held->second.contains(kAllHcas)) continue;
    for (const Device& device : devices) {
      if (device.id != kAllHcas) continue;
      for (const fabric::Hca& hca : device.all) rails.insert(hca.rail);
    }
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
