// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_PROFILES_CLUSTER_PROFILES_H_
#define RAILHEAD_OPERATOR_PROFILES_CLUSTER_PROFILES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "kube/cache.h"
#include "operator/cluster/stored_node.h"
#include "operator/label_selector.h"
#include "operator/profiles/profile_set.h"
#include "operator/profiles/stored_profile.h"

namespace railhead::op {

// What is to be told about a profile.
struct ProfileReport {
  int64_t generation = 0;  // that it is about
  std::string refusal;     // why it cannot be read, and so is left out; else empty
  std::string conflict;    // which others it contradicts, as of FindConflicts; else empty

  bool operator==(const ProfileReport&) const = default;
};

// What the caches hold, made ready for admission: immutable.
struct ClusterProfiles {
  std::shared_ptr<const ProfileSet> set;         // never null; without what cannot be read
  std::map<std::string, ProfileReport> reports;  // by the profile's name; of all of them
};

ClusterProfiles BuildClusterProfiles(const kube::Cache<StoredProfile>& profiles,
                                     const kube::Cache<Labels>& namespaces,
                                     const kube::Cache<StoredNode>& nodes);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_CLUSTER_PROFILES_H_
