// SPDX-License-Identifier: Apache-2.0
//
// Which devices each resource offers: the configuration's wish, and what containers hold of an
// earlier one. Pure.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_ASSIGNMENT_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_ASSIGNMENT_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "device-plugin/config/config.h"
#include "device-plugin/offer/device_list.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// The devices of every resource of the configuration (none for one that matches nothing; of one
// with per_rail, of each rail that it has), and of every other resource of which containers hold an
// HCA of this node. `held`: resource to the ids that containers hold.
//
// A change of the configuration may give an HCA to another resource, or divide it into slots, while
// a container holds it. Until the container has gone, both its old device and its new ones are
// listed as unhealthy, so that kubelet neither forgets the one nor gives the other away.
std::map<std::string, std::vector<Device>> Assign(
    const AgentConfig& config, const fabric::NodeInventory& inventory,
    const std::map<std::string, std::set<std::string>>& held);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_ASSIGNMENT_H_
