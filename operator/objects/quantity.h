// SPDX-License-Identifier: Apache-2.0
//
// Quantities of the Kubernetes API, such as "64Mi". Pure. Used by diagnosis and gangs.
#ifndef RAILHEAD_OPERATOR_OBJECTS_QUANTITY_H_
#define RAILHEAD_OPERATOR_OBJECTS_QUANTITY_H_

#include <optional>

#include "kube/json.h"

namespace railhead::op::verdict {

// Parses a quantity of the Kubernetes API ("8", "64Mi", "1.5G", "100m", "1e3"), or a plain number.
// Returns nullopt for invalid or negative values.
std::optional<double> ParseQuantity(const kube::Json& value);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_OBJECTS_QUANTITY_H_
