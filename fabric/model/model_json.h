// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_FABRIC_MODEL_MODEL_JSON_H_
#define RAILHEAD_FABRIC_MODEL_MODEL_JSON_H_

#include <nlohmann/json.hpp>

#include "fabric/model/fabric_model.h"

namespace railhead::fabric {

// A model as ParseFabricModel reads it, fields in the order of its documentation.
nlohmann::ordered_json ToJson(const FabricModel& model);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_MODEL_MODEL_JSON_H_
