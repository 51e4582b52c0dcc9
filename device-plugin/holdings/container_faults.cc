// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/holdings/container_faults.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device-plugin/grant/preference.h"
#include "device-plugin/holdings/gpu_watch.h"

namespace railhead::device_plugin {
namespace {

// Returns why a container does not have the HCAs nearest to its GPUs.
std::string WhyNotNearest(const DeviceSnapshot& snapshot, const std::vector<std::string>& held,
                          const std::vector<std::string>& gpus) {
  DeviceSnapshot well;
  well.inventory = snapshot.inventory;
  std::set<std::string> unusable;
  for (const Device& device : snapshot.devices) {
    if (device.hca.health.usable() ||
        std::find(held.begin(), held.end(), device.id) != held.end()) {
      well.devices.push_back(device);
    } else {
      unusable.insert(absl::StrCat(device.hca.name, " (", device.hca.health.Text(), ")"));
    }
  }
  if (!IsAligned(well, held, gpus)) {
    return "they were allocated before the GPUs, or nearer ones were in use";
  }
  return absl::StrCat("nearer ones cannot be used: ", absl::StrJoin(unusable, ", "));
}

}  // namespace

std::vector<ContainerFault> FindNotNearest(const std::vector<ContainerDevices>& listed,
                                           const ResourceSnapshots& offered,
                                           const std::vector<fabric::Gpu>& gpus,
                                           const std::map<std::string, std::string>& uuids) {
  std::vector<ContainerFault> faults;
  for (const ContainerDevices& container : listed) {
    const std::vector<std::string> near = GpusOf(container, gpus, uuids);
    if (near.empty()) continue;
    for (const auto& [resource, ids] : container.devices) {
      const auto snapshot = offered.find(resource);
      if (snapshot == offered.end() || IsAligned(*snapshot->second, ids, near)) continue;
      faults.push_back(
          {container, absl::StrCat("container ", container.container, " has GPU ",
                                   absl::StrJoin(near, ", "), " and of ", resource, " ",
                                   absl::StrJoin(ids, ", "), ", which are not the nearest: ",
                                   WhyNotNearest(*snapshot->second, ids, near))});
    }
  }
  return faults;
}

std::vector<ContainerFault> FindDivided(const std::vector<ContainerDevices>& listed,
                                        const ResourceSnapshots& offered) {
  std::vector<ContainerFault> faults;
  for (const ContainerDevices& container : listed) {
    std::vector<std::string> ours;
    for (const auto& [resource, ids] : container.devices) {
      if (offered.contains(resource)) ours.push_back(resource);
    }
    if (ours.size() < 2) continue;
    faults.push_back(
        {container,
         absl::StrCat(
             "container ", container.container, " has devices of ", absl::StrJoin(ours, ", "),
             ", but kubelet passes on rails.json and NCCL_IB_HCA of only one, at random; request "
             "only one of them, or let the agent use CDI (devicePlugin.cdi in the chart)")});
  }
  return faults;
}

}  // namespace railhead::device_plugin
