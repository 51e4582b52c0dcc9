// SPDX-License-Identifier: Apache-2.0
#include "operator/profile_match.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace railhead::op {

ProfileChoice ChooseProfile(const std::vector<RailProfile>& profiles,
                            const Labels& namespace_labels, const Labels& pod_labels) {
  const auto name = namespace_labels.find("kubernetes.io/metadata.name");
  if (name != namespace_labels.end() && name->second == "kube-system") return {};
  std::vector<const RailProfile*> best;
  for (const RailProfile& profile : profiles) {
    if (!profile.namespaces.Matches(namespace_labels) || !profile.pods.Matches(pod_labels)) {
      continue;
    }
    if (!best.empty() && profile.priority < best.front()->priority) continue;
    if (!best.empty() && profile.priority > best.front()->priority) best.clear();
    best.push_back(&profile);
  }
  if (best.empty()) return {};
  if (best.size() == 1) return {best.front(), ""};
  std::vector<std::string> names;
  names.reserve(best.size());
  for (const RailProfile* profile : best) names.push_back(profile->name);
  std::sort(names.begin(), names.end());
  return {nullptr, absl::StrCat("spec.priority: RailProfiles ", absl::StrJoin(names, " and "),
                                " match with the same priority ", best.front()->priority,
                                ", so none is applied: give one of them a higher one")};
}

}  // namespace railhead::op
