// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_GANGS_GANG_CONTROLLER_H_
#define RAILHEAD_OPERATOR_GANGS_GANG_CONTROLLER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fabric/model/fabric_model.h"
#include "kube/client.h"
#include "kube/monotonic.h"
#include "operator/cluster/cluster_caches.h"
#include "operator/gangs/gang_counts.h"
#include "operator/gangs/gang_events.h"
#include "operator/gangs/gang_machine.h"
#include "operator/gangs/node_tree.h"
#include "operator/gangs/planner.h"
#include "operator/rounds.h"
#include "placement/topology/stored_topology.h"

namespace railhead::op::gangs {

struct GangControllerOptions {
  std::string host;  // this replica, for its Events
  // For waits and ages. Called by several threads.
  std::function<absl::Time()> now = kube::SteadyTimeOfDay();
  std::function<absl::Time()> time_of_day = absl::Now;  // of Events
  RdmaResources rdma_resources = {};                    // as in admission
  // A gang that has waited for so long has room kept free for it (planner.h).
  absl::Duration reserve_after = absl::InfiniteDuration();
  // Where people have written a model into FabricTopologies, that says where nodes are.
  bool topology = false;
};

// Carries out what the gangs' machine decides by the pods and nodes of the caches, while this
// replica leads. What a leader before it has left half done it finds in the pods. A pod that has a
// node is never touched.
//
// Rights needed, beside those of ClusterCaches: get and patch pods; patch pods/status; create
// pods/eviction; create and patch events.
class GangController {
 public:
  // Subscribes to `caches`, which are for gangs. `api` and `caches` must outlive the controller.
  // `leads` is exact at any moment.
  GangController(GangControllerOptions options, kube::Api* api, ClusterCaches* caches,
                 std::function<bool()> leads);

  // Works until `stop`.
  void Run(const std::stop_token& stop);

  // What is below is thread-safe, and brief.
  void OnLead();  // this replica has begun to
  GangCounts Counts() const;

 private:
  void Subscribe(ClusterCaches& caches);
  absl::Status Round();
  void TakeSnapshot();
  // Does it, and adds what is to be told of that, and the gangs for which all was done. Unavailable
  // when nobody has answered.
  absl::Status Act(const GangMachine::Step& step, std::vector<Notice>& notices,
                   std::set<std::string>& carried_out);
  // Returns when there is more to be told.
  absl::Time Tell(const std::vector<Decision>& decisions, const std::set<std::string>& carried_out);
  void Told(const absl::Status& recorded);
  void Count(const std::vector<Decision>& decisions, const std::set<std::string>& carried_out);

  const GangControllerOptions options_;
  kube::Api* const api_;
  const ClusterCaches* const caches_;
  const std::function<bool()> leads_;
  Rounds rounds_;

  // Used by Run's thread alone.
  GangEvents events_;
  GangMachine machine_;
  std::map<std::string, absl::Time> first_seen_;  // gangs that are not complete, by their keys
  std::vector<PodValue> pods_now_;
  NodeTree tree_;
  std::unique_ptr<ClusterRoom> room_;  // of the tree
  topology::JoinedModel model_;        // that people have written
  uint64_t tree_generation_ = 0;       // of nodes
  uint64_t tree_model_ = 0;            // as model_changes_
  std::string untold_;                 // why an Event was not

  std::atomic<uint64_t> model_changes_{0};

  mutable std::mutex mutex_;
  GangCounts counts_;  // guarded by mutex_
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_GANG_CONTROLLER_H_
