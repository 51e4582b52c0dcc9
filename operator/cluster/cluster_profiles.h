// SPDX-License-Identifier: Apache-2.0
//
// RailProfiles of the cluster, prepared from the caches: for admission, for diagnosis and for the
// status of each profile. Built by ProfileFeed.
#ifndef RAILHEAD_OPERATOR_CLUSTER_CLUSTER_PROFILES_H_
#define RAILHEAD_OPERATOR_CLUSTER_CLUSTER_PROFILES_H_

#include <map>
#include <memory>
#include <string>

#include "kube/cache/cache.h"
#include "operator/cluster/stored_node.h"
#include "operator/objects/label_selector.h"
#include "operator/profiles/profile_set.h"
#include "operator/profiles/profile_status.h"
#include "operator/profiles/stored_profile.h"

namespace railhead::op {

// Content of the caches, prepared for admission. Immutable.
struct ClusterProfiles {
  std::shared_ptr<const ProfileSet> set;         // never null; without unreadable profiles
  std::map<std::string, ProfileReport> reports;  // by profile name; for all profiles
};

ClusterProfiles BuildClusterProfiles(const kube::Cache<StoredProfile>& profiles,
                                     const kube::Cache<Labels>& namespaces,
                                     const kube::Cache<StoredNode>& nodes);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CLUSTER_CLUSTER_PROFILES_H_
