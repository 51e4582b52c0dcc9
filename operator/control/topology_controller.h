// SPDX-License-Identifier: Apache-2.0
//
// Controller of the topology: keeps the status of the FabricTopology "cluster" equal to the fabric,
// from the cached nodes and FabricTopologies. With `publish`, also the node labels and objects of
// other schedulers. The leader writes, and only changes.
#ifndef RAILHEAD_OPERATOR_CONTROL_TOPOLOGY_CONTROLLER_H_
#define RAILHEAD_OPERATOR_CONTROL_TOPOLOGY_CONTROLLER_H_

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/monotonic.h"
#include "operator/cluster/cluster_caches.h"
#include "operator/control/rounds.h"
#include "operator/topology/foreign_objects.h"
#include "operator/topology/node_labeller.h"
#include "placement/topology/cluster_fabric.h"
#include "placement/topology/stored_topology.h"

namespace railhead::topology {

struct TopologyControllerOptions {
  bool publish = false;  // node labels, and objects of other schedulers
  // Delay that collects several changes into one round.
  absl::Duration settle = absl::Seconds(2);
  // Minimum interval between status updates, except for urgent ones (IsUrgent).
  absl::Duration between_statuses = absl::Seconds(15);
  std::function<absl::Time()> monotonic = kube::MonotonicNow;
  std::function<absl::Time()> now = absl::Now;  // wall clock
};

// Rights needed, beside those of ClusterCaches: create fabrictopologies; patch
// fabrictopologies/status; with `publish`, those of NodeLabeller and ForeignObjects.
class TopologyController {
 public:
  // Subscribes to `caches`, which must watch for the topology. `api` and `caches` must outlive the
  // controller. `leads` must be exact at any time.
  TopologyController(TopologyControllerOptions options, kube::Api* api, op::ClusterCaches* caches,
                     std::function<bool()> leads);

  // Runs until `stop`.
  void Run(const std::stop_token& stop);

  // Call when this replica becomes the leader. Thread-safe; returns quickly.
  void OnLead();

 private:
  absl::Status Round();
  absl::Status Publish(const std::vector<NodeLabeller::Node>& nodes,
                       const absl::StatusOr<ClusterFabric>& fabric);

  const TopologyControllerOptions options_;
  kube::Api* const api_;
  const op::ClusterCaches* const caches_;
  const std::function<bool()> leads_;
  op::Rounds rounds_;

  // Used by Run's thread only.
  NodeLabeller labeller_;
  ForeignObjects foreign_;
  JoinedModel model_;
  absl::Time last_status_ = absl::InfinitePast();  // last write; monotonic
};

}  // namespace railhead::topology

#endif  // RAILHEAD_OPERATOR_CONTROL_TOPOLOGY_CONTROLLER_H_
