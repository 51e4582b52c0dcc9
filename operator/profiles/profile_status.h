// SPDX-License-Identifier: Apache-2.0
//
// Status of a RailProfile: the conditions Accepted (readable and in use) and Conflicts (some pods
// do not get it, because another profile has the same priority).
#ifndef RAILHEAD_OPERATOR_PROFILES_PROFILE_STATUS_H_
#define RAILHEAD_OPERATOR_PROFILES_PROFILE_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "kube/json.h"
#include "operator/profiles/stored_profile.h"

namespace railhead::op {

// Status to report about a profile.
struct ProfileReport {
  int64_t generation = 0;  // generation that it refers to
  std::string refusal;     // why it is unreadable, and therefore skipped; else empty
  std::string conflict;    // conflicting profiles, from FindConflicts; else empty

  bool operator==(const ProfileReport&) const = default;
};

// Returns the object to apply to the status subresource; nullopt if the stored status equals the
// report. It contains the resourceVersion of `stored`. An unchanged condition keeps its
// lastTransitionTime; others get `now`.
std::optional<kube::Json> StatusToApply(const StoredProfile& stored, const ProfileReport& report,
                                        absl::Time now);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_STATUS_H_
