// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_DEVICE_PLUGIN_DISCOVER_H_
#define RAILHEAD_DEVICE_PLUGIN_DISCOVER_H_

#include <string>

#include "device-plugin/config/config.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// An inventory as tables for people: the HCAs, the reasons of those that were refused, the GPUs
// with the HCAs that are nearest to them.
std::string ToTable(const fabric::NodeInventory& inventory);

// The same for what a configuration makes of it: for each resource its HCAs, or why it has none.
// `inventory` with the configuration's rails.
std::string ToTable(const AgentConfig& config, const fabric::NodeInventory& inventory);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_DISCOVER_H_
