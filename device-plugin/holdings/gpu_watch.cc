// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/holdings/gpu_watch.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "device-plugin/devices/container_devices.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
// Kubernetes names do not contain slashes.
std::string KeyOf(const ContainerDevices& container) {
  return absl::StrCat(container.pod_namespace, "/", container.pod, "/", container.container);
}

std::string GpuAddress(const std::string& id, const std::vector<fabric::Gpu>& gpus,
                       const std::map<std::string, std::string>& uuids) {
  // A share of a GPU (time slicing or MPS) is "GPU-...::3".
  const auto found = uuids.find(id.substr(0, id.find("::")));
  if (found != uuids.end()) return found->second;
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
  // From now on their entries count as old.
  for (const ContainerDevices& container : listed) {
    if (WrittenDown(container, checkpoint)) settled_.insert(KeyOf(container));
  }
  latest_ = std::move(now);
  old_uids_.clear();
  for (const CheckpointEntry& entry : checkpoint) old_uids_.insert(entry.pod_uid);
}

bool GpuWatch::WrittenDown(const ContainerDevices& container,
                           const std::vector<CheckpointEntry>& checkpoint) const {
  return std::any_of(checkpoint.begin(), checkpoint.end(), [&](const CheckpointEntry& entry) {
    const auto found = container.devices.find(entry.resource);
    return found != container.devices.end() && !old_uids_.contains(entry.pod_uid) &&
           std::set<std::string>(found->second.begin(), found->second.end()) == entry.ids;
  });
}

std::vector<std::string> GpuWatch::InAdmission(
    const std::vector<ContainerDevices>& listed, const std::vector<CheckpointEntry>& checkpoint,
    const std::set<std::string>& ours, const std::vector<fabric::Gpu>& gpus,
    const std::map<std::string, std::string>& uuids) const {
  std::vector<std::string> found;
  for (const ContainerDevices& container : listed) {
    if (settled_.contains(KeyOf(container))) continue;
    const bool has_ours =
        std::any_of(container.devices.begin(), container.devices.end(),
                    [&ours](const auto& resource) { return ours.contains(resource.first); });
    if (has_ours || WrittenDown(container, checkpoint)) continue;
    std::vector<std::string> addresses = GpusOf(container, gpus, uuids);
    if (!addresses.empty()) found = std::move(addresses);
  }
  return found;
}

}  // namespace railhead::device_plugin
