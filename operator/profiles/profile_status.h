// SPDX-License-Identifier: Apache-2.0
//
// The status of a RailProfile: the conditions Accepted (it could be read, and is used) and
// Conflicts (there are pods that it is not applied to, because another profile has the same
// priority).
#ifndef RAILHEAD_OPERATOR_PROFILES_PROFILE_STATUS_H_
#define RAILHEAD_OPERATOR_PROFILES_PROFILE_STATUS_H_

#include <optional>

#include "absl/time/time.h"
#include "kube/json.h"
#include "operator/profiles/cluster_profiles.h"
#include "operator/profiles/stored_profile.h"

namespace railhead::op {

// The object to apply to the subresource status so that it says what the report says; nothing when
// it does so already. It carries the resourceVersion that it was decided on. A condition whose
// status stays keeps its lastTransitionTime; `now` is that of the others.
std::optional<kube::Json> StatusToApply(const StoredProfile& stored, const ProfileReport& report,
                                        absl::Time now);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_STATUS_H_
