// SPDX-License-Identifier: Apache-2.0
//
// Cached fields of a RailProfile, and their reader. Used by ClusterCaches and `railhead doctor`.
#ifndef RAILHEAD_OPERATOR_PROFILES_STORED_PROFILE_H_
#define RAILHEAD_OPERATOR_PROFILES_STORED_PROFILE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "kube/json.h"
#include "operator/profiles/profile.h"

namespace railhead::op {

// A condition of the API, without its type.
struct ProfileCondition {
  std::string status;  // "True", "False"
  std::string reason;
  std::string message;
  int64_t generation = 0;  // observedGeneration
  std::string since;       // lastTransitionTime, as written

  bool operator==(const ProfileCondition&) const = default;
};

// A cached RailProfile. The schema of the API server rejects invalid ones, but may be older or
// newer than this program.
struct StoredProfile {
  std::string name;
  std::string version;                 // metadata.resourceVersion
  int64_t generation = 0;              // metadata.generation
  std::optional<RailProfile> profile;  // nullopt if unreadable
  std::string refusal;                 // why it is unreadable; begins with the field's path
  // Its status.observedGeneration, not that of a condition.
  int64_t observed_generation = 0;
  std::map<std::string, ProfileCondition> conditions;  // by type

  bool operator==(const StoredProfile&) const = default;
};

StoredProfile ReadStoredProfile(const kube::Json& object);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_STORED_PROFILE_H_
