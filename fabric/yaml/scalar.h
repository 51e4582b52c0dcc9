// SPDX-License-Identifier: Apache-2.0
//
// What a scalar without quotes means.
#ifndef RAILHEAD_FABRIC_YAML_SCALAR_H_
#define RAILHEAD_FABRIC_YAML_SCALAR_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

// Whether YAML 1.2 (its core schema) takes this text, when it is not in quotes, for a number or a
// boolean. Other readers of the file, Helm before all, would change such a text: 15e3 to 15000.
bool IsYamlNumber(absl::string_view text);
bool IsYamlBoolean(absl::string_view text);

// A whole number of this range, without leading zeros: to some readers of YAML they make a number
// octal.
std::optional<int> YamlInteger(absl::string_view text, int low, int high);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_YAML_SCALAR_H_
