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
#include "kube/informer.h"
#include "kube/monotonic.h"
#include "operator/rounds.h"
#include "operator/topology/foreign_objects.h"
#include "operator/topology/node_labeller.h"
#include "placement/topology/cluster_fabric.h"
#include "placement/topology/cluster_node.h"
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

// Watches nodes and the FabricTopologies, and keeps the status of the one called "cluster" as the
// fabric is; with `publish` also the labels of nodes and the objects of other schedulers. Every
// replica watches, the one that leads writes, and nothing where nothing has changed.
//
// Rights needed: list and watch nodes and fabrictopologies; create fabrictopologies; patch
// fabrictopologies/status; with `publish` those of NodeLabeller and ForeignObjects.
class TopologyController {
 public:
  // `api` must outlive the controller. `leads` is exact at any moment.
  TopologyController(TopologyControllerOptions options, kube::Api* api,
                     std::function<bool()> leads);

  void Start();        // begins to watch
  void RequestStop();  // the destructor waits for what Start began
  // Works until `stop`.
  void Run(const std::stop_token& stop);

  // What is below is thread-safe, and brief.
  void OnLead();  // this replica has begun to
  std::vector<kube::InformerState> States() const;

 private:
  absl::Status Round();
  absl::Status Publish(const std::vector<NodeValue>& nodes,
                       const absl::StatusOr<ClusterFabric>& fabric);

  const TopologyControllerOptions options_;
  kube::Api* const api_;
  const std::function<bool()> leads_;
  op::Rounds rounds_;

  // Used by Run's thread alone.
  NodeLabeller labeller_;
  ForeignObjects foreign_;
  JoinedModel model_;
  absl::Time last_status_ = absl::InfinitePast();  // when it was written; monotonic

  kube::Informer<ClusterNode> nodes_;
  kube::Informer<StoredTopology> topologies_;
};

}  // namespace railhead::topology

#endif  // RAILHEAD_OPERATOR_TOPOLOGY_TOPOLOGY_CONTROLLER_H_
