// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_STORED_PROFILE_H_
#define RAILHEAD_OPERATOR_STORED_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "kube/json.h"
#include "operator/profile.h"

namespace railhead::op {

// What the operator keeps of a RailProfile in the cluster. The API server's schema lets no wrong
// one in, but it may be older or newer than this program.
struct StoredProfile {
  std::string name;
  int64_t generation = 0;              // metadata.generation
  std::optional<RailProfile> profile;  // nothing when it cannot be read
  std::string refusal;                 // why not; begins with the path of the field

  bool operator==(const StoredProfile&) const = default;
};

StoredProfile ReadStoredProfile(const kube::Json& object);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_STORED_PROFILE_H_
