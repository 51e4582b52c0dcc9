// SPDX-License-Identifier: Apache-2.0
#include "operator/stored_profile.h"

#include <utility>

#include "absl/status/statusor.h"

namespace railhead::op {

using kube::Json;

StoredProfile ReadStoredProfile(const Json& object) {
  StoredProfile stored;
  stored.name = kube::StringAt(object, {"metadata", "name"});
  const Json* generation = kube::FindPath(object, {"metadata", "generation"});
  if (generation != nullptr && generation->is_number_integer()) {
    stored.generation = generation->get<int64_t>();
  }
  absl::StatusOr<RailProfile> profile = ParseRailProfile(object);
  if (profile.ok()) {
    stored.profile = *std::move(profile);
  } else {
    stored.refusal = std::string(profile.status().message());
  }
  return stored;
}

}  // namespace railhead::op
