// SPDX-License-Identifier: Apache-2.0
//
// YAML output of a fabric model, for `railhead topology -o yaml`.
#ifndef RAILHEAD_FABRIC_MODEL_MODEL_YAML_H_
#define RAILHEAD_FABRIC_MODEL_MODEL_YAML_H_

#include <string>

#include "fabric/model/fabric_model.h"

namespace railhead::fabric {

// Returns the model as YAML, one line per node, for people to edit and ParseFabricModel to read.
std::string ToYaml(const FabricModel& model);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_MODEL_MODEL_YAML_H_
