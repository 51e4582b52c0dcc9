// SPDX-License-Identifier: Apache-2.0
#include "operator/profiles/profile_match.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace railhead::op {
namespace {

// A message has an end.
constexpr size_t kMostNames = 8;

bool IsKubeSystem(const Labels& namespace_labels) {
  const auto name = namespace_labels.find("kubernetes.io/metadata.name");
  return name != namespace_labels.end() && name->second == "kube-system";
}

using Spaces = std::vector<absl::string_view>;  // names of namespaces, in order

Spaces InBoth(const Spaces& a, const Spaces& b) {
  Spaces both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}
Spaces Without(const Spaces& all, const Spaces& some) {
  Spaces rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(rest));
  return rest;
}

struct Placed {
  const RailProfile* profile;
  Spaces spaces;  // whose pods it is for
};

std::vector<Placed> Place(const std::vector<RailProfile>& profiles,
                          const std::map<std::string, Labels>& namespaces) {
  std::vector<Placed> all;
  for (const RailProfile& profile : profiles) {
    Placed& placed = all.emplace_back(Placed{&profile, {}});
    for (const auto& [space, labels] : namespaces) {
      if (IsKubeSystem(labels) || !profile.namespaces.Matches(labels)) continue;
      placed.spaces.push_back(space);
    }
  }
  return all;
}

// The namespaces in which a pod could match both, and no other profile alone takes all such pods
// away from them. (Two that do so together are not looked for; the message allows for them.)
Spaces InConflict(const Placed& a, const Placed& b, const std::vector<Placed>& all) {
  Spaces spaces = InBoth(a.spaces, b.spaces);
  if (spaces.empty() || !CanBothMatch(a.profile->pods, b.profile->pods)) return {};
  for (const Placed& other : all) {
    if (other.profile->priority <= a.profile->priority) continue;
    if (!MatchesAllOfBoth(other.profile->pods, a.profile->pods, b.profile->pods)) continue;
    spaces = Without(spaces, other.spaces);
    if (spaces.empty()) break;
  }
  return spaces;
}

struct Conflict {
  int64_t priority = 0;
  absl::string_view space;       // the first one in which there is a conflict
  std::set<std::string> others;  // names of the profiles

  void Add(const RailProfile& other, absl::string_view in) {
    space = others.empty() ? in : std::min(space, in);
    priority = other.priority;
    others.insert(other.name);
  }
  std::string Message() const {
    std::vector<std::string> names(others.begin(), others.end());
    const std::string more =
        names.size() > kMostNames ? absl::StrCat(" and ", names.size() - kMostNames, " more") : "";
    names.resize(std::min(names.size(), kMostNames));
    return absl::StrCat("spec.priority: RailProfile ", absl::StrJoin(names, ", "), more,
                        " has the same priority ", priority,
                        " and can match the same pods, for example in namespace ", space,
                        "; neither is applied to these pods, unless a profile with a higher "
                        "priority matches: give one of them a higher priority");
  }
};

}  // namespace

std::map<std::string, std::string> FindConflicts(const std::vector<RailProfile>& profiles,
                                                 const std::map<std::string, Labels>& namespaces) {
  const std::vector<Placed> all = Place(profiles, namespaces);
  std::map<std::string, Conflict> conflicts;
  for (auto a = all.begin(); a != all.end(); ++a) {
    for (auto b = std::next(a); b != all.end(); ++b) {
      if (a->profile->priority != b->profile->priority) continue;
      const Spaces spaces = InConflict(*a, *b, all);
      if (spaces.empty()) continue;
      conflicts[a->profile->name].Add(*b->profile, spaces.front());
      conflicts[b->profile->name].Add(*a->profile, spaces.front());
    }
  }
  std::map<std::string, std::string> messages;
  for (const auto& [name, conflict] : conflicts) messages[name] = conflict.Message();
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
  if (best.size() == 1) return {.profile = best.front()};
  std::vector<std::string> names;
  names.reserve(best.size());
  for (const RailProfile* profile : best) names.push_back(profile->name);
  std::sort(names.begin(), names.end());
  return {nullptr, std::move(names), best.front()->priority};
}

}  // namespace railhead::op
