// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/offline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kube/json.h"
#include "kube/yaml.h"
#include "operator/admission/mutation.h"

namespace railhead::op {

using kube::Json;

absl::StatusOr<OfflineResult> MutateOffline(absl::string_view manifests,
                                            const InjectionConfig& config,
                                            const ProfileSet& profiles, OfflineOutput output) {
  absl::StatusOr<std::vector<Json>> objects = kube::ParseYaml(manifests);
  if (!objects.ok()) return objects.status();
  OfflineResult result;
  for (Json& object : *objects) {
    const std::string version = kube::StringAt(object, {"apiVersion"});
    const std::string kind = kube::StringAt(object, {"kind"});
    if (kind.empty() || version.empty()) {
      return absl::InvalidArgumentError("a document has no apiVersion or kind");
    }
    const bool is_pod = version == "v1" && kind == "Pod";
    const bool is_job = version == "batch/v1" && kind == "Job";
    Mutation mutation;
    if (is_pod) {
      const std::string space = kube::StringAt(object, {"metadata", "namespace"});
      mutation = MutatePod(object, config, profiles, space.empty() ? "default" : space);
    }
    if (is_job) mutation = StampJob(object, config);
    const std::string who =
        absl::StrCat(kind, " ", kube::StringAt(object, {"metadata", "name"}), ": ");
    for (const std::string& warning : mutation.warnings) result.warnings.push_back(who + warning);
    for (const std::string& reason : mutation.reasons) result.reasons.push_back(who + reason);
    if (output == OfflineOutput::kPatch) {
      if (is_pod || is_job) absl::StrAppend(&result.text, mutation.patch.dump(2), "\n");
    } else {
      object.patch_inplace(mutation.patch);  // made for this very object, so it always applies
      absl::StrAppend(&result.text, object.dump(2), "\n");
    }
  }
  return result;
}

}  // namespace railhead::op
