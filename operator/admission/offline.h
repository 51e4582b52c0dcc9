// SPDX-License-Identifier: Apache-2.0
//
// The webhook without a cluster, for manifests in files. Used by `railhead-operator mutate`.
#ifndef RAILHEAD_OPERATOR_ADMISSION_OFFLINE_H_
#define RAILHEAD_OPERATOR_ADMISSION_OFFLINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "operator/config/config.h"
#include "operator/profiles/profile_set.h"

namespace railhead::op {

enum class OfflineOutput {
  kObject,  // the objects as they would be stored
  kPatch,   // the JSON Patch of each Pod and Job
};

struct OfflineResult {
  std::string text;                   // JSON documents, each with a line break at its end
  std::vector<std::string> warnings;  // as kubectl shows them
  std::vector<std::string> reasons;   // variables from a profile, each with its field
};

// Applies the webhook to the objects of a YAML or JSON text, without a cluster. Objects other than
// Pods and Jobs pass unchanged. A pod without a namespace is in "default". Returns InvalidArgument
// if the text cannot be parsed.
absl::StatusOr<OfflineResult> MutateOffline(absl::string_view manifests,
                                            const InjectionConfig& config,
                                            const ProfileSet& profiles, OfflineOutput output);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_OFFLINE_H_
