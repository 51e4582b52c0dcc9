// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/gpu_watch.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "device-plugin/pod_resources.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
// Kubernetes' names hold no slash.
std::string KeyOf(const ContainerDevices& container) {
  return absl::StrCat(container.pod_namespace, "/", container.pod, "/", container.container);
}

std::string GpuAddress(const std::string& id, const std::vector<fabric::Gpu>& gpus,
                       const std::map<std::string, std::string>& uuids) {
  if (const auto found = uuids.find(id); found != uuids.end()) return found->second;
  for (const fabric::Gpu& gpu : gpus) {
    if (absl::StrContains(id, gpu.pci_address)) return gpu.pci_address;
  }
  return "";
}

std::vector<std::string> GpusOf(const ContainerDevices& container,
                                const std::vector<fabric::Gpu>& gpus,
                                const std::map<std::string, std::string>& uuids) {
  std::set<std::string> addresses;
  for (const auto& [resource, ids] : container.devices) {
    for (const std::string& id : ids) {
      std::string address = GpuAddress(id, gpus, uuids);
      if (!address.empty()) addresses.insert(std::move(address));
    }
  }
  return {addresses.begin(), addresses.end()};
}

void GpuWatch::Look(const std::vector<ContainerDevices>& listed,
                    const std::vector<CheckpointEntry>& checkpoint) {
  std::set<std::string> now;
  for (const ContainerDevices& container : listed) now.insert(KeyOf(container));
  settled_.clear();
  std::set_intersection(now.begin(), now.end(), latest_.begin(), latest_.end(),
                        std::inserter(settled_, settled_.end()));
  latest_ = std::move(now);
  old_uids_.clear();
  for (const CheckpointEntry& entry : checkpoint) old_uids_.insert(entry.pod_uid);
}

std::vector<std::string> GpuWatch::InAdmission(
    const std::vector<ContainerDevices>& listed, const std::vector<CheckpointEntry>& checkpoint,
    const std::set<std::string>& ours, const std::vector<fabric::Gpu>& gpus,
    const std::map<std::string, std::string>& uuids) const {
  const auto written_down = [&](const std::string& resource, const std::vector<std::string>& ids) {
    const std::set<std::string> wanted(ids.begin(), ids.end());
    return std::any_of(checkpoint.begin(), checkpoint.end(), [&](const CheckpointEntry& entry) {
      return entry.resource == resource && entry.ids == wanted &&
             !old_uids_.contains(entry.pod_uid);
    });
  };
  std::vector<std::string> found;
  for (const ContainerDevices& container : listed) {
    if (settled_.contains(KeyOf(container))) continue;
    // What is written down is all that the container gets.
    const bool has_all = std::any_of(
        container.devices.begin(), container.devices.end(), [&](const auto& resource_and_ids) {
          const auto& [resource, ids] = resource_and_ids;
          return ours.contains(resource) || written_down(resource, ids);
        });
    std::vector<std::string> addresses = GpusOf(container, gpus, uuids);
    if (!has_all && !addresses.empty()) found = std::move(addresses);
  }
  return found;
}

}  // namespace railhead::device_plugin
