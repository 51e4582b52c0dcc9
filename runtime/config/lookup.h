// SPDX-License-Identifier: Apache-2.0
//
// Access to environment variables, injected so that tests choose them.
#ifndef RAILHEAD_RUNTIME_CONFIG_LOOKUP_H_
#define RAILHEAD_RUNTIME_CONFIG_LOOKUP_H_

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace railhead::config {

// Returns a variable's value; nullopt if unset. An empty value counts as unset.
using Lookup = absl::FunctionRef<std::optional<std::string>(absl::string_view name)>;

// Returns the value, or "".
inline std::string ValueOf(Lookup lookup, absl::string_view name) {
  return lookup(name).value_or("");
}

}  // namespace railhead::config

#endif  // RAILHEAD_RUNTIME_CONFIG_LOOKUP_H_
