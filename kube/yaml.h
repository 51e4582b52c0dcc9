// SPDX-License-Identifier: Apache-2.0
//
// YAML to JSON, with Kubernetes' interpretation of types. Used for configuration files, kubeconfigs
// and manifests.
#ifndef RAILHEAD_KUBE_YAML_H_
#define RAILHEAD_KUBE_YAML_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"

namespace railhead::kube {

// Parses the documents of a YAML (or JSON) text; skips empty documents. Unquoted null, booleans and
// numbers become JSON's, all else strings. InvalidArgument names `source` (the name of the text)
// and the line of a syntax error, a duplicate or non-scalar key, or aliases that expand beyond a
// limit.
absl::StatusOr<std::vector<Json>> ParseYaml(absl::string_view text, absl::string_view source = "");

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_YAML_H_
