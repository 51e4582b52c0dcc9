// SPDX-License-Identifier: Apache-2.0
//
// What kubelet tells of the devices that containers hold.
#ifndef RAILHEAD_DEVICE_PLUGIN_KUBELET_POD_RESOURCES_H_
#define RAILHEAD_DEVICE_PLUGIN_KUBELET_POD_RESOURCES_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device-plugin/offer/container_devices.h"

namespace railhead::device_plugin {

// All containers on this node that hold devices, in kubelet's order (within a pod the order of
// their allocation); also one that kubelet is admitting at this moment, with what it has got so
// far. Fails when kubelet does not answer within `deadline`: then nothing is known.
absl::StatusOr<std::vector<ContainerDevices>> ListContainerDevices(
    const std::string& socket_path, std::chrono::milliseconds deadline);

// The same, with the names of all pods on this node.
absl::StatusOr<PodList> ListPods(const std::string& socket_path,
                                 std::chrono::milliseconds deadline);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_KUBELET_POD_RESOURCES_H_
