// SPDX-License-Identifier: Apache-2.0
//
// Health of HCAs, by the network mode of their resource's pods. Pure. Used by NextState.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_OFFER_HEALTH_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_OFFER_HEALTH_H_

#include <set>
#include <string>

#include "device-plugin/config/config.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// Applies the health rules of each HCA's resource (fabric/hca_rules.h), and marks HCAs whose
// interface moves. Rails must be as configured (ApplyRails). `held`: whole ids of HCAs that
// containers hold.
//
// With `moved`, a held HCA may be missing: a CNI plugin moved the RDMA device into the pod
// (exclusive RDMA namespaces), and its node in /dev remains. Such an HCA counts as healthy.
//
// Returns the DeviceIds of HCAs whose link is not the host's: with `moved`, those whose interface
// is in a pod, or set down as before and after that.
std::set<std::string> JudgeOffers(const AgentConfig& config, const std::set<std::string>& held,
                                  fabric::NodeInventory& inventory);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_OFFER_HEALTH_H_
