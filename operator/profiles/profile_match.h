// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_PROFILES_PROFILE_MATCH_H_
#define RAILHEAD_OPERATOR_PROFILES_PROFILE_MATCH_H_

#include <map>
#include <string>
#include <vector>

#include "operator/label_selector.h"
#include "operator/profiles/profile.h"

namespace railhead::op {

struct ProfileChoice {
  const RailProfile* profile = nullptr;  // one of those given; null for none
  // Why none is taken although some match: the best ones contradict each other. Begins with the
  // field's path. The pod must not depend on which of them came first.
  std::string conflict;
};

// The profile for a pod: of those whose selectors match, the one with the highest priority. No
// profile ever matches in kube-system, whatever labels somebody gave it.
ProfileChoice ChooseProfile(const std::vector<RailProfile>& profiles,
                            const Labels& namespace_labels, const Labels& pod_labels);

// Profiles of one priority of which a pod could match both, in a namespace that there is: to such a
// pod neither is applied. There is no conflict where a profile of higher priority matches all such
// pods of the namespace. By the name of each profile that is in conflict, what to tell about it;
// begins with the field's path. `namespaces` are the labels of each, by its name.
std::map<std::string, std::string> FindConflicts(const std::vector<RailProfile>& profiles,
                                                 const std::map<std::string, Labels>& namespaces);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_PROFILE_MATCH_H_
