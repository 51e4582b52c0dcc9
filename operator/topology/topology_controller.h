// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_TOPOLOGY_TOPOLOGY_CONTROLLER_H_
#define RAILHEAD_OPERATOR_TOPOLOGY_TOPOLOGY_CONTROLLER_H_

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
#include "operator/rounds.h"
#include "operator/topology/foreign_objects.h"
#include "operator/topology/node_labeller.h"
#include "placement/topology/cluster_fabric.h"
#include "placement/topology/stored_topology.h"

namespace railhead::topology {

struct TopologyControllerOptions {
  bool publish = false;  // labels of nodes, and objects of other schedulers
  // Changes that come together are looked at together.
  absl::Duration settle = absl::Seconds(2);
  // The status is not written more often than this, but for what people wait for (IsUrgent).
  absl::Duration between_statuses = absl::Seconds(15);
  std::function<absl::Time()> monotonic = kube::MonotonicNow;
  std::function<absl::Time()> now = absl::Now;  // the time of day
};

// Keeps the status of the FabricTopology called "cluster" as the fabric is, by the nodes and
// FabricTopologies of the caches; with `publish` also the labels of nodes and the objects of other
// schedulers. The replica that leads writes, and only what has changed.
//
// Rights needed, beside those of ClusterCaches: create fabrictopologies; patch
// fabrictopologies/status; with `publish` those of NodeLabeller and ForeignObjects.
class TopologyController {
 public:
  // Subscribes to `caches`, which are for the topology. `api` and `caches` must outlive the
  // controller. `leads` is exact at any moment.
  TopologyController(TopologyControllerOptions options, kube::Api* api, op::ClusterCaches* caches,
                     std::function<bool()> leads);

  // Works until `stop`.
  void Run(const std::stop_token& stop);

  // This replica has begun to lead. Thread-safe, brief.
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

  // Used by Run's thread alone.
  NodeLabeller labeller_;
  ForeignObjects foreign_;
  JoinedModel model_;
  absl::Time last_status_ = absl::InfinitePast();  // when it was written; monotonic
};

}  // namespace railhead::topology

#endif  // RAILHEAD_OPERATOR_TOPOLOGY_TOPOLOGY_CONTROLLER_H_
