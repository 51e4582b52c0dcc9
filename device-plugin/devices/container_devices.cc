// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/devices/container_devices.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device-plugin/devices/device_list.h"

namespace railhead::device_plugin {

DeviceHolders HoldersByHca(const std::vector<ContainerDevices>& containers,
                           const std::set<std::string>& resources) {
  DeviceHolders holders;
  for (const ContainerDevices& container : containers) {
    for (const auto& [resource, ids] : container.devices) {
      if (!resources.contains(resource)) continue;
      for (const std::string& id : ids) {
        holders[WholeHca(id)].emplace(container.pod_namespace, container.pod);
      }
    }
  }
  return holders;
}

std::vector<ContainerDevices> WithMembers(std::vector<ContainerDevices> containers,
                                          const Members& members) {
  for (ContainerDevices& container : containers) {
    for (auto& [resource, ids] : container.devices) {
      const auto all = members.find(resource);
      if (all == members.end()) continue;
      std::vector<std::string> expanded;
      for (const std::string& id : ids) {
        if (!IsAllHcas(id)) {
          expanded.push_back(id);
          continue;
        }
        const std::string slot = id.substr(WholeHca(id).size());
        for (const std::string& hca : all->second) expanded.push_back(hca + slot);
      }
      ids = std::move(expanded);
    }
  }
  return containers;
}

std::map<std::string, std::set<std::string>> HeldByResource(
    const std::vector<ContainerDevices>& containers) {
  std::map<std::string, std::set<std::string>> held;
  for (const ContainerDevices& container : containers) {
    for (const auto& [resource, ids] : container.devices) {
      held[resource].insert(ids.begin(), ids.end());
    }
  }
  return held;
}

}  // namespace railhead::device_plugin
