// SPDX-License-Identifier: Apache-2.0
//
// YAML as people write it, turned into the JSON that Kubernetes means by it.
#ifndef RAILHEAD_KUBE_YAML_H_
#define RAILHEAD_KUBE_YAML_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"

namespace railhead::kube {

// The documents of a YAML (or JSON) text; empty documents are left out. Unquoted null, booleans and
// numbers become JSON's, everything else is a string. InvalidArgument names the line for text that
// is not YAML, mappings with a key twice or a key that is no scalar, and texts which grow beyond a
// bound when their aliases are expanded.
absl::StatusOr<std::vector<Json>> ParseYaml(absl::string_view text);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_YAML_H_
