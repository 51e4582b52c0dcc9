// SPDX-License-Identifier: Apache-2.0
//
// Selects the RailProfile of a pod, and finds profiles that conflict. Pure. Used by admission, and
// for the status of profiles.
#ifndef RAILHEAD_OPERATOR_PROFILES_PROFILE_MATCH_H_
#define RAILHEAD_OPERATOR_PROFILES_PROFILE_MATCH_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/objects/label_selector.h"
#include "operator/profiles/profile.h"

namespace railhead::op {

struct ProfileChoice {
  const RailProfile* profile = nullptr;  // points into `profiles`; null: none
  // Names of the matching profiles with the highest priority, sorted, if there are several: none is
  // chosen, because the result must not depend on their order. Else empty.
  std::vector<std::string> conflicting = {};
  int64_t priority = 0;  // of those
};

// Returns the matching profile with the highest priority. No profile matches in kube-system,
// whatever labels it has.
ProfileChoice ChooseProfile(const std::vector<RailProfile>& profiles,
                            const Labels& namespace_labels, const Labels& pod_labels);

// Finds profiles of equal priority that can match the same pod in an existing namespace; such a pod
// gets neither. It is not a conflict if a profile of higher priority matches all such pods of the
// namespace. Returns a message for each conflicting profile, by name, beginning with the field's
// path. `namespaces`: labels by name.
std::map<std::string, std::string> FindConflicts(const std::vector<RailProfile>& profiles,
                                                 const std::map<std::string, Labels>& namespaces);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_MATCH_H_
