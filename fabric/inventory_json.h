// SPDX-License-Identifier: Apache-2.0
//
// An inventory as the `discover` command prints it.
#ifndef RAILHEAD_FABRIC_INVENTORY_JSON_H_
#define RAILHEAD_FABRIC_INVENTORY_JSON_H_

#include <string>

#include "fabric/inventory.h"

namespace railhead::fabric {

// One JSON object with the lists hcas, gpus, affinity and nearest. Bytes that are not UTF-8 are
// replaced.
std::string ToJson(const NodeInventory& inventory);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_INVENTORY_JSON_H_
