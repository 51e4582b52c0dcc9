// SPDX-License-Identifier: Apache-2.0
//
// Which devices containers hold. Pure.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_CONTAINER_DEVICES_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_CONTAINER_DEVICES_H_

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
};

// A pod, by namespace and name.
using PodName = std::pair<std::string, std::string>;

// What kubelet lists.
struct PodList {
  std::vector<ContainerDevices> containers;  // those that hold devices
  std::set<PodName> pods;                    // all of them
};

// Whole HCAs (DeviceId without a slot) to the pods that hold them or a slot of them. More than one
// also where kubelet still lists a pod that has ended beside the one that came after it.
using DeviceHolders = std::map<std::string, std::set<PodName>>;

// `resources`: the names under which HCAs are offered.
DeviceHolders HoldersByHca(const std::vector<ContainerDevices>& containers,
                           const std::set<std::string>& resources);

// Resources of which one device stands for all HCAs, to the ids of these.
using Members = std::map<std::string, std::vector<std::string>>;

// With the ids of the HCAs in place of those of devices that stand for all of them; slots of such a
// device are slots of each.
std::vector<ContainerDevices> WithMembers(std::vector<ContainerDevices> containers,
                                          const Members& members);

// Resource to the ids of it that are held.
std::map<std::string, std::set<std::string>> HeldByResource(
    const std::vector<ContainerDevices>& containers);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_CONTAINER_DEVICES_H_
