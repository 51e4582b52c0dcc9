// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_PROFILE_MATCH_H_
#define RAILHEAD_OPERATOR_PROFILE_MATCH_H_

#include <string>
#include <vector>

#include "operator/label_selector.h"
#include "operator/profile.h"

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

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILE_MATCH_H_
