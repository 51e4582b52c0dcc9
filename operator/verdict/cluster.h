// SPDX-License-Identifier: Apache-2.0
//
// Inputs common to the diagnosis of all pods: nodes, profiles and settings. Built by the collector
// and `railhead doctor`.
#ifndef RAILHEAD_OPERATOR_VERDICT_CLUSTER_H_
#define RAILHEAD_OPERATOR_VERDICT_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "operator/verdict/facts.h"

namespace railhead::op::verdict {

// Capacity of the nodes for a resource.
struct Offer {
  int64_t most_healthy = 0;  // healthy devices; maximum over all nodes
  int64_t most = 0;          // devices, healthy or not; maximum over all nodes
  std::string roomiest;      // the first node that has `most`
};

// Settings by the administrator, and the cluster's history.
struct ClusterSettings {
  // Older pods cannot have passed admission.
  absl::Time admission_since = absl::InfinitePast();  // API server's clock
  bool tells_missed = true;                           // report pods that did not pass admission
  bool memlock_raised = false;  // on some nodes, for containers with RDMA devices
};

// Facts about all nodes are computed once, here. A rule, which runs for each pod of a large job,
// can look nodes up but not iterate over them.
class Cluster {
 public:
  using Nodes = std::map<std::string, std::shared_ptr<const NodeFacts>>;  // values are never null

  Cluster() = default;
  // `nodes`: all that accept pods, by name; `profiles`: by name.
  Cluster(Nodes nodes, std::map<std::string, ProfileFacts> profiles, ClusterSettings settings = {});

  bool knows_nodes() const { return !nodes_.empty(); }
  // Returns whether nodes may be added for waiting pods.
  bool may_grow() const { return may_grow_; }
  // Returns whether some node offers an RDMA device.
  bool has_devices() const { return has_devices_; }
  const ClusterSettings& settings() const { return settings_; }
  void Set(const ClusterSettings& settings) { settings_ = settings; }
  // Each returns null if the name is unknown.
  const NodeFacts* FindNode(const std::string& name) const;
  const ProfileFacts* FindProfile(const std::string& name) const;
  const Offer* FindOffer(const std::string& resource) const;

 private:
  Nodes nodes_;
  std::map<std::string, ProfileFacts> profiles_;
  std::map<std::string, Offer> offers_;  // by resource
  ClusterSettings settings_;
  bool may_grow_ = false;
  bool has_devices_ = false;
};

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_CLUSTER_H_
