// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_VERDICT_CLUSTER_H_
#define RAILHEAD_OPERATOR_VERDICT_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "operator/verdict/facts.h"

namespace railhead::op::verdict {

// How many devices of a resource a node has.
struct Offer {
  int64_t most_healthy = 0;  // the most that one node has in order
  int64_t most = 0;          // the most that one node has, in order or not
  std::string roomiest;      // the first node that has `most`
};

// What the administrator and the cluster's history say.
struct ClusterSettings {
  // Pods that are not younger could not pass our admission.
  absl::Time admission_since = absl::InfinitePast();  // by the API server's clock
  bool tells_missed = true;     // whether pods that did not pass it are anybody's concern
  bool memlock_raised = false;  // on some nodes, for whoever holds RDMA devices
};

// What every pod is judged by. What has to be known of all nodes is found once, here: a rule that
// is applied to each pod of a large job can look nodes up, and has no way to go through them.
class Cluster {
 public:
  using Nodes = std::map<std::string, std::shared_ptr<const NodeFacts>>;  // none of them null

  Cluster() = default;
  // `nodes`: all that can take pods, by name; `profiles`: by name.
  Cluster(Nodes nodes, std::map<std::string, ProfileFacts> profiles, ClusterSettings settings = {});

  bool knows_nodes() const { return !nodes_.empty(); }
  // Nodes may be added because pods wait for them.
  bool may_grow() const { return may_grow_; }
  // Some node offers some RDMA device.
  bool has_devices() const { return has_devices_; }
  const ClusterSettings& settings() const { return settings_; }
  void Set(const ClusterSettings& settings) { settings_ = settings; }
  // Each is null where there is none of that name.
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
