// SPDX-License-Identifier: Apache-2.0
//
// Types of unquoted YAML scalars.
#ifndef RAILHEAD_BASE_YAML_SCALAR_H_
#define RAILHEAD_BASE_YAML_SCALAR_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace railhead {

// Return true if YAML 1.2 (core schema) reads this unquoted text as a number or boolean. Other
// readers of the file, such as Helm, would rewrite it: 15e3 to 15000.
bool IsYamlNumber(absl::string_view text);
bool IsYamlBoolean(absl::string_view text);

// Parses an integer in this range, without leading zeros, which some YAML readers take as octal.
std::optional<int> YamlInteger(absl::string_view text, int low, int high);

}  // namespace railhead

#endif  // RAILHEAD_BASE_YAML_SCALAR_H_
