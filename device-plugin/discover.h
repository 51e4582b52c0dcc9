// SPDX-License-Identifier: Apache-2.0
//
// Tables of `railhead-device-plugin discover`: the node's devices, and what a configuration makes
// of them. Pure.
#ifndef RAILHEAD_DEVICE_PLUGIN_DISCOVER_H_
#define RAILHEAD_DEVICE_PLUGIN_DISCOVER_H_

#include <string>

#include "device-plugin/config/config.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

// Formats an inventory as tables: HCAs, the reasons of rejected ones, and GPUs with their nearest
// HCAs.
std::string ToTable(const fabric::NodeInventory& inventory);

// Formats the effect of a configuration: for each resource its HCAs, or why it has none.
// `inventory` must have the configuration's rails.
std::string ToTable(const AgentConfig& config, const fabric::NodeInventory& inventory);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_DISCOVER_H_
