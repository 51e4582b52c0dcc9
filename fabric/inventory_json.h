// SPDX-License-Identifier: Apache-2.0
//
// Inventory as JSON, printed by the `discover` command.
#ifndef RAILHEAD_FABRIC_INVENTORY_JSON_H_
#define RAILHEAD_FABRIC_INVENTORY_JSON_H_

#include <string>

#include "fabric/inventory.h"

namespace railhead::fabric {

// Returns one object with the lists hcas, gpus, affinity and nearest. Replaces invalid UTF-8.
std::string ToJson(const NodeInventory& inventory);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_INVENTORY_JSON_H_
