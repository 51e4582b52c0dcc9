// SPDX-License-Identifier: Apache-2.0
//
// What the agent tells people as Kubernetes Events. Pure.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_EVENTS_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_EVENTS_H_

#include <string>
#include <vector>

#include "device-plugin/kubelet/kubelet_checkpoint.h"
#include "device-plugin/offer/container_devices.h"
#include "device-plugin/offer/device_list.h"
#include "kube/events.h"

namespace railhead::device_plugin {

// Of the node: reasons ConfigurationRefused, ConfigurationTaken, ResourceWithoutHcas,
// RailMapIgnored, RdmaNamespacesExclusive, DeviceScanHangs, DeviceScanWorks.
kube::Event NodeEvent(bool warning, const std::string& reason, const std::string& message);

// RailDown and RailUp, for each HCA whose health is not what it was. An HCA that is new is only
// told of when it is down.
std::vector<kube::Event> RailEvents(const DeviceSnapshot& before, const DeviceSnapshot& after);

// A warning of the container's pod: HcasNotNearest, SeveralResources. Kubelet tells a pod's uid
// only in what it has written down; an event without it would not be shown, so there is none: an
// empty reason.
kube::Event PodEvent(const ContainerDevices& container,
                     const std::vector<CheckpointEntry>& checkpoint, const std::string& reason,
                     const std::string& message);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_EVENTS_H_
