// SPDX-License-Identifier: Apache-2.0
//
// Assigns devices to resources, by the configuration and by what containers hold of an earlier one.
// Pure. Used by NextState.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_ASSIGNMENT_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_ASSIGNMENT_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "device-plugin/config/config.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// Returns the devices of every configured resource (empty if it matches nothing; with perRail, of
// each of its rails), and of every other resource of which containers hold an HCA of this node.
// `held`: resource to the ids that containers hold.
//
// A change of the configuration may move an HCA to another resource, or divide it into slots, while
// a container holds it. Until the container ends, its old and new devices are both listed as
// unhealthy, so that kubelet neither forgets the old nor allocates the new.
std::map<std::string, std::vector<Device>> Assign(
    const AgentConfig& config, const fabric::NodeInventory& inventory,
    const std::map<std::string, std::set<std::string>>& held);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_ASSIGNMENT_H_
