// SPDX-License-Identifier: Apache-2.0
//
// Devices that containers hold. Pure values.
#ifndef RAILHEAD_DEVICE_PLUGIN_DEVICES_CONTAINER_DEVICES_H_
#define RAILHEAD_DEVICE_PLUGIN_DEVICES_CONTAINER_DEVICES_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace railhead::device_plugin {

struct ContainerDevices {
  std::string pod_namespace;
  std::string pod;
  std::string container;
  std::map<std::string, std::vector<std::string>> devices;  // by resource

  bool operator==(const ContainerDevices&) const = default;
};

// A pod: namespace and name.
using PodName = std::pair<std::string, std::string>;

// Kubelet's list.
struct PodList {
  std::vector<ContainerDevices> containers;  // with devices
  std::set<PodName> pods;                    // all
};

// Whole HCAs (DeviceId without a slot) to the pods that hold them or a slot. May have two pods for
// an exclusive HCA, if kubelet still lists a terminated one.
using DeviceHolders = std::map<std::string, std::set<PodName>>;

// `resources`: names of resources of HCAs.
DeviceHolders HoldersByHca(const std::vector<ContainerDevices>& containers,
                           const std::set<std::string>& resources);

// Resources of which one device stands for all HCAs, with the ids of these HCAs.
using Members = std::map<std::string, std::vector<std::string>>;

// Replaces ids of devices that stand for all HCAs by the ids of these HCAs; slots of such a device
// become slots of each.
std::vector<ContainerDevices> WithMembers(std::vector<ContainerDevices> containers,
                                          const Members& members);

// Returns the held ids by resource.
std::map<std::string, std::set<std::string>> HeldByResource(
    const std::vector<ContainerDevices>& containers);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_DEVICES_CONTAINER_DEVICES_H_
