// SPDX-License-Identifier: Apache-2.0
//
// Health of HCAs by how the pods of their resource reach the network. Pure.
#ifndef RAILHEAD_DEVICE_PLUGIN_OFFER_OFFER_HEALTH_H_
#define RAILHEAD_DEVICE_PLUGIN_OFFER_OFFER_HEALTH_H_

#include <set>
#include <string>

#include "device-plugin/config/config.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// Judges each HCA by the network of its resource (fabric/hca_rules.h), and notes whose interface
// moves. Rails must be as configured (ApplyRails). `held`: whole ids of HCAs that containers hold.
//
// With `moved` an HCA that is held may be missing: a CNI plugin has moved the RDMA device itself
// into the pod (exclusive RDMA namespaces), which its device node in /dev tells. It is as healthy
// as its pod.
void JudgeOffers(const AgentConfig& config, const std::set<std::string>& held,
                 fabric::NodeInventory& inventory);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_OFFER_OFFER_HEALTH_H_
