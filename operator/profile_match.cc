// SPDX-License-Identifier: Apache-2.0
#include "operator/profile_match.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace railhead::op {
namespace {

// A message has an end.
constexpr size_t kMostNames = 8;

bool IsKubeSystem(const Labels& namespace_labels) {
  const auto name = namespace_labels.find("kubernetes.io/metadata.name");
  return name != namespace_labels.end() && name->second == "kube-system";
}

struct Conflict {
  int64_t priority = 0;
  std::string space;             // one in which there is a conflict
  std::set<std::string> others;  // names of the profiles

  std::string Message() const {
    std::vector<std::string> names(others.begin(), others.end());
    const std::string more =
        names.size() > kMostNames ? absl::StrCat(" and ", names.size() - kMostNames, " more") : "";
    names.resize(std::min(names.size(), kMostNames));
    return absl::StrCat("spec.priority: RailProfile ", absl::StrJoin(names, ", "), more,
                        " has the same priority ", priority,
                        " and can match the same pods, in namespace ", space,
                        " for one; to them neither is applied: give one of them a higher one");
  }
};

}  // namespace

std::map<std::string, std::string> FindConflicts(const std::vector<RailProfile>& profiles,
                                                 const std::map<std::string, Labels>& namespaces) {
  std::map<std::string, Conflict> conflicts;
  for (const auto& [space, labels] : namespaces) {
    if (IsKubeSystem(labels)) continue;
    std::vector<const RailProfile*> here;
    for (const RailProfile& profile : profiles) {
      if (profile.namespaces.Matches(labels)) here.push_back(&profile);
    }
    for (const RailProfile* a : here) {
      for (const RailProfile* b : here) {
        if (a == b || a->priority != b->priority) continue;
        Conflict& conflict = conflicts[a->name];
        if (conflict.others.contains(b->name) || !CanBothMatch(a->pods, b->pods)) continue;
        if (conflict.others.empty()) conflict.space = space;
        conflict.priority = a->priority;
        conflict.others.insert(b->name);
      }
    }
  }
  std::map<std::string, std::string> messages;
  for (const auto& [name, conflict] : conflicts) {
    if (!conflict.others.empty()) messages[name] = conflict.Message();
  }
  return messages;
}

ProfileChoice ChooseProfile(const std::vector<RailProfile>& profiles,
                            const Labels& namespace_labels, const Labels& pod_labels) {
  if (IsKubeSystem(namespace_labels)) return {};
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
