// SPDX-License-Identifier: Apache-2.0
//
// JSON output of a fabric model, for `railhead topology -o json` and files of placement decisions.
#ifndef RAILHEAD_FABRIC_MODEL_MODEL_JSON_H_
#define RAILHEAD_FABRIC_MODEL_MODEL_JSON_H_

#include <nlohmann/json.hpp>

#include "fabric/model/fabric_model.h"

namespace railhead::fabric {

// Returns the model as JSON in the format of ParseFabricModel, with fields in documented order.
nlohmann::ordered_json ToJson(const FabricModel& model);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_MODEL_MODEL_JSON_H_
