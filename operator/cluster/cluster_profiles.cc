// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster/cluster_profiles.h"

#include <utility>

#include "operator/profiles/profile_match.h"

namespace railhead::op {

ClusterProfiles BuildClusterProfiles(const kube::Cache<StoredProfile>& profiles,
                                     const kube::Cache<Labels>& namespaces,
                                     const kube::Cache<StoredNode>& nodes) {
  ClusterProfiles all;
  ProfileSet set;
  profiles.ForEach([&](const std::string& name, const kube::Cache<StoredProfile>::Value& stored) {
    all.reports[name] = {stored->generation, stored->refusal, ""};
    if (stored->profile) set.profiles.push_back(*stored->profile);
  });
  namespaces.ForEach([&](const std::string& name, const kube::Cache<Labels>::Value& labels) {
    set.namespaces[name] = *labels;
  });
  std::map<std::string, Labels> namespace_labels;
  for (const auto& [name, labels] : set.namespaces) {
    namespace_labels[name] = set.NamespaceLabels(name);
  }
  for (auto& [name, message] : FindConflicts(set.profiles, namespace_labels)) {
    all.reports[name].conflict = message;
  }
  nodes.ForEach([&](const std::string& name, const kube::Cache<StoredNode>::Value& node) {
    set.facts.AddNode(name, node->labels);
  });
  all.set = std::make_shared<const ProfileSet>(std::move(set));
  return all;
}

}  // namespace railhead::op
