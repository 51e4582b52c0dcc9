// SPDX-License-Identifier: Apache-2.0
//
// What kubelet tells of the devices that containers hold.
#ifndef RAILHEAD_DEVICE_PLUGIN_POD_RESOURCES_H_
#define RAILHEAD_DEVICE_PLUGIN_POD_RESOURCES_H_

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace railhead::device_plugin {

struct ContainerDevices {
  std::string pod_namespace;
  std::string pod;
  std::string container;
  std::map<std::string, std::vector<std::string>> devices;  // by resource
};

// All containers on this node that hold devices, in kubelet's order (within a pod the order of
// their allocation); also one that kubelet is admitting at this moment, with what it has got so
// far. Fails when kubelet does not answer within `deadline`: then nothing is known.
absl::StatusOr<std::vector<ContainerDevices>> ListContainerDevices(
    const std::string& socket_path, std::chrono::milliseconds deadline);

// A pod, by namespace and name.
using PodName = std::pair<std::string, std::string>;

// Whole HCAs (DeviceId without a slot) to the pods that hold them or a slot of them. More than one
// also where kubelet still lists a pod that has ended beside the one that came after it.
using DeviceHolders = std::map<std::string, std::set<PodName>>;

// `resources`: the names under which HCAs are offered.
DeviceHolders HoldersByHca(const std::vector<ContainerDevices>& containers,
                           const std::set<std::string>& resources);

// Resource to the ids of it that are held.
std::map<std::string, std::set<std::string>> HeldByResource(
    const std::vector<ContainerDevices>& containers);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_POD_RESOURCES_H_
