// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/volume.h"

#include "absl/status/statusor.h"
#include "operator/admission/lists.h"

namespace railhead::op {

using kube::Json;

absl::Status AddVolume(const Json& volume, const Json& mount, const std::vector<std::string>& lists,
                       Draft& pod) {
  constexpr char kVolumes[] = "/spec/volumes";
  const absl::StatusOr<const Json*> volumes = ListAt(pod, kVolumes);
  if (!volumes.ok()) return volumes.status();
  if (Named(*volumes, kube::StringAt(volume, {"name"})) == nullptr) {
    if (absl::Status added = pod.Append(kVolumes, volume); !added.ok()) return added;
  }
  for (const std::string& list : lists) {
    if (absl::Status added = pod.Append(list, mount); !added.ok()) return added;
  }
  return absl::OkStatus();
}

}  // namespace railhead::op
