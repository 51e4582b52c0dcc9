// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_VERDICT_QUANTITY_H_
#define RAILHEAD_OPERATOR_VERDICT_QUANTITY_H_

#include <optional>

#include "kube/json.h"

namespace railhead::op::verdict {

// A quantity of the Kubernetes API ("8", "64Mi", "1.5G", "100m", "1e3"), or a plain number. Nothing
// for what is none, or is negative.
std::optional<double> ParseQuantity(const kube::Json& value);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_QUANTITY_H_
