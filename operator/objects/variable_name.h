// SPDX-License-Identifier: Apache-2.0
//
// Checks of the names of environment variables in profiles, pods and the configuration.
#ifndef RAILHEAD_OPERATOR_OBJECTS_VARIABLE_NAME_H_
#define RAILHEAD_OPERATOR_OBJECTS_VARIABLE_NAME_H_

#include "absl/strings/string_view.h"

namespace railhead::op {

// Returns true for a valid environment variable name: letters, digits and '_', first not a digit,
// at most 128 bytes.
bool IsVariableName(absl::string_view name);

// Returns true if Railhead computes this variable per pod or container, so that a profile or
// configuration must not set it: RANK, ...; NCCL_IB_HCA, set by the node agent;
// RAILHEAD_METRICS_PORT, which Prometheus scrapes.
bool IsComputedVariable(absl::string_view name);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_OBJECTS_VARIABLE_NAME_H_
