// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_DEVICE_PLUGIN_DISCOVER_H_
#define RAILHEAD_DEVICE_PLUGIN_DISCOVER_H_

#include <string>

#include "fabric/inventory.h"

namespace railhead::device_plugin {

// An inventory as a table for people: one line per HCA, then the reasons of those that were
// refused.
std::string ToTable(const fabric::NodeInventory& inventory);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_DISCOVER_H_
