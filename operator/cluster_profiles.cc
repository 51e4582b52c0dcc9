// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster_profiles.h"

#include <utility>

namespace railhead::op {

ClusterProfiles BuildClusterProfiles(const kube::Cache<StoredProfile>& profiles,
                                     const kube::Cache<Labels>& namespaces,
                                     const kube::Cache<Labels>& nodes) {
  ClusterProfiles all;
  ProfileSet set;
  profiles.ForEach([&](const std::string& name, const kube::Cache<StoredProfile>::Value& stored) {
    all.reports[name] = {stored->generation, stored->refusal};
    if (stored->profile) set.profiles.push_back(*stored->profile);
  });
  namespaces.ForEach([&](const std::string& name, const kube::Cache<Labels>::Value& labels) {
    set.namespaces[name] = *labels;
  });
  nodes.ForEach([&](const std::string& name, const kube::Cache<Labels>::Value& labels) {
    set.facts.AddNode(name, *labels);
  });
  all.set = std::make_shared<const ProfileSet>(std::move(set));
  return all;
}

}  // namespace railhead::op
