// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_OFFLINE_H_
#define RAILHEAD_OPERATOR_OFFLINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "operator/config.h"

namespace railhead::op {

enum class OfflineOutput {
  kObject,  // the objects as they would be stored
  kPatch,   // the JSON Patch of each Pod and Job
};

struct OfflineResult {
  std::string text;                   // JSON documents, each ended by a line break
  std::vector<std::string> warnings;  // what kubectl would show
};

// What the webhook would make of the objects in a YAML or JSON text, without a cluster. Objects
// other than Pods and Jobs are passed through. InvalidArgument when the text cannot be read.
absl::StatusOr<OfflineResult> MutateOffline(absl::string_view manifests,
                                            const InjectionConfig& config, OfflineOutput output);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_OFFLINE_H_
