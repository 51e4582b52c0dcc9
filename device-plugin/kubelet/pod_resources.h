// SPDX-License-Identifier: Apache-2.0
//
// Client of kubelet's PodResources API: the devices that containers hold.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_POD_RESOURCES_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_POD_RESOURCES_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device-plugin/devices/container_devices.h"

namespace railhead::device_plugin {

// Timeout of a request to kubelet.
inline constexpr std::chrono::seconds kPodResourcesDeadline(3);

// Returns all containers of this node that hold devices, in kubelet's order (within a pod, the
// order of allocation), including the one that kubelet is admitting, with the devices that it
// already has. Fails if kubelet does not answer within `deadline`.
absl::StatusOr<std::vector<ContainerDevices>> ListContainerDevices(
    const std::string& socket_path, std::chrono::milliseconds deadline);

// Also returns the names of all pods of this node.
absl::StatusOr<PodList> ListPods(const std::string& socket_path,
                                 std::chrono::milliseconds deadline);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_POD_RESOURCES_H_
