// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_FABRIC_MODEL_MODEL_YAML_H_
#define RAILHEAD_FABRIC_MODEL_MODEL_YAML_H_

#include <string>

#include "fabric/model/fabric_model.h"

namespace railhead::fabric {

// A model as people edit it and ParseFabricModel reads it: a line for each node.
std::string ToYaml(const FabricModel& model);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_MODEL_MODEL_YAML_H_
