// SPDX-License-Identifier: Apache-2.0
//
// Containers whose devices are not what their users expect, for the log and for Events. Pure. Used
// by Agent after each query of kubelet's list.
#ifndef RAILHEAD_DEVICE_PLUGIN_HOLDINGS_CONTAINER_FAULTS_H_
#define RAILHEAD_DEVICE_PLUGIN_HOLDINGS_CONTAINER_FAULTS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

struct ContainerFault {
  ContainerDevices container;
  std::string message;
};

using ResourceSnapshots =
    std::map<std::string, std::shared_ptr<const DeviceSnapshot>>;  // by resource

// Returns containers whose HCAs are not the nearest to their GPUs, one entry per resource. `uuids`:
// see GpuAddress.
std::vector<ContainerFault> FindNotNearest(const std::vector<ContainerDevices>& listed,
                                           const ResourceSnapshots& offered,
                                           const std::vector<fabric::Gpu>& gpus,
                                           const std::map<std::string, std::string>& uuids);

// Returns containers with devices of several offered resources. Without CDI, kubelet passes on the
// response for one of them.
std::vector<ContainerFault> FindDivided(const std::vector<ContainerDevices>& listed,
                                        const ResourceSnapshots& offered);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_HOLDINGS_CONTAINER_FAULTS_H_
