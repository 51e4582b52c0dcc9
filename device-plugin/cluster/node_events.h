// SPDX-License-Identifier: Apache-2.0
//
// Kubernetes Events of the agent. Pure.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_EVENTS_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_EVENTS_H_

#include <string>
#include <vector>

#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/devices/kubelet_checkpoint.h"
#include "kube/events.h"

namespace railhead::device_plugin {

// Event of the node. Reasons: ConfigurationRefused, ConfigurationTaken, ResourceWithoutHcas,
// RailMapIgnored, RdmaNamespacesExclusive, DeviceScanHangs, DeviceScanWorks.
kube::Event NodeEvent(bool warning, const std::string& reason, const std::string& message);

// Returns RailDown and RailUp for each HCA whose health changed, and RailDown for a new HCA that is
// down.
std::vector<kube::Event> RailEvents(const DeviceSnapshot& before, const DeviceSnapshot& after);

// Warning of the container's pod: HcasNotNearest, SeveralResources, DeviceRenumbered. The pod's uid
// comes from kubelet's checkpoint; without a uid, kubectl would not show the event: then the reason
// is empty, and nothing should be sent.
kube::Event PodEvent(const ContainerDevices& container,
                     const std::vector<CheckpointEntry>& checkpoint, const std::string& reason,
                     const std::string& message);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_EVENTS_H_
