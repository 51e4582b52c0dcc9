// SPDX-License-Identifier: Apache-2.0
//
// Inventory as JSON, printed by the `discover` command; the faults of an HCA as in node facts, too.
#ifndef RAILHEAD_FABRIC_INVENTORY_JSON_H_
#define RAILHEAD_FABRIC_INVENTORY_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "fabric/hca_health.h"
#include "fabric/inventory.h"

namespace railhead::fabric {

// Returns one object with the lists hcas, gpus, affinity and nearest. Replaces invalid UTF-8.
std::string ToJson(const NodeInventory& inventory);

// Writes [{"stage": ..., "text": ...}], the gravest fault first. Called by nlohmann's
// conversions.
void to_json(nlohmann::ordered_json& json, const Health& health);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_INVENTORY_JSON_H_
