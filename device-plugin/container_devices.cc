// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/container_devices.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "device-plugin/device_list.h"

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
