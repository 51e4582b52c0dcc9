// SPDX-License-Identifier: Apache-2.0
#include "operator/offline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kube/json.h"
#include "kube/yaml.h"
#include "operator/mutation.h"

namespace railhead::op {

using kube::Json;

absl::StatusOr<OfflineResult> MutateOffline(absl::string_view manifests,
                                            const InjectionConfig& config, OfflineOutput output) {
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
    if (is_pod) mutation = MutatePod(object, config);
    if (is_job) mutation = StampJob(object);
    for (const std::string& warning : mutation.warnings) {
      result.warnings.push_back(
          absl::StrCat(kind, " ", kube::StringAt(object, {"metadata", "name"}), ": ", warning));
    }
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
