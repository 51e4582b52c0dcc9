// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_VARIABLE_NAME_H_
#define RAILHEAD_OPERATOR_VARIABLE_NAME_H_

#include "absl/strings/string_view.h"

namespace railhead::op {

// Whether an environment variable can have this name: letters, digits and '_', no digit first, at
// most 128 bytes.
bool IsVariableName(absl::string_view name);

// Whether Railhead decides this variable for every pod or container (RANK, ...; NCCL_IB_HCA, which
// the node agent sets; RAILHEAD_METRICS_PORT, which Prometheus is told), so that nobody may give it
// a value for many.
bool IsComputedVariable(absl::string_view name);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_VARIABLE_NAME_H_
