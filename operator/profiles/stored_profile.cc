// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/stored_profile.h"

#include <initializer_list>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/elements.h"

namespace railhead::op {

using kube::Json;

namespace {

int64_t NumberAt(const Json& object, std::initializer_list<absl::string_view> path) {
  const Json* number = kube::FindPath(object, path);
  return number != nullptr && number->is_number_integer() ? number->get<int64_t>() : 0;
}

}  // namespace

StoredProfile ReadStoredProfile(const Json& object) {
  StoredProfile stored;
  stored.name = kube::StringAt(object, {"metadata", "name"});
  stored.version = kube::StringAt(object, {"metadata", "resourceVersion"});
  stored.generation = NumberAt(object, {"metadata", "generation"});
  stored.observed_generation = NumberAt(object, {"status", "observedGeneration"});
  for (const Json& condition : kube::ElementsAt(object, {"status", "conditions"})) {
    stored.conditions[kube::StringAt(condition, {"type"})] = {
        kube::StringAt(condition, {"status"}), kube::StringAt(condition, {"reason"}),
        kube::StringAt(condition, {"message"}), NumberAt(condition, {"observedGeneration"}),
        kube::StringAt(condition, {"lastTransitionTime"})};
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
