// SPDX-License-Identifier: Apache-2.0
//
// Controller of gangs: runs the gang machine on the cached pods and nodes, and executes its actions
// while this replica leads. Events are sent by another thread, so no gang waits for them.
#ifndef RAILHEAD_OPERATOR_CONTROL_GANG_CONTROLLER_H_
#define RAILHEAD_OPERATOR_CONTROL_GANG_CONTROLLER_H_

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
#include "operator/control/rounds.h"
#include "operator/gangs/gang_counts.h"
#include "operator/gangs/gang_events.h"
#include "operator/gangs/gang_machine.h"
#include "operator/gangs/node_tree.h"
#include "operator/gangs/planner.h"
#include "placement/topology/stored_topology.h"

namespace railhead::op::gangs {

struct GangControllerOptions {
  std::string host;  // this replica, for its Events
  // Monotonic clock, for waits. Called concurrently, as the others.
  std::function<absl::Time()> now = kube::MonotonicNow;
  // The API server's clock, for ages of what it has stamped.
  std::function<absl::Time()> server_time = kube::SteadyTimeOfDay();
  std::function<absl::Time()> time_of_day = absl::Now;  // wall clock, for Events
  RdmaResources rdma_resources = {};                    // as in admission
  // After this wait, room is kept free for a gang (planner.h).
  absl::Duration reserve_after = absl::InfiniteDuration();
  // Use node places of a user's model in FabricTopologies, if any.
  bool topology = false;
};

// Continues unfinished work of earlier leaders, from the state of the pods. Never changes a pod
// that has a node.
//
// Rights needed, beside those of ClusterCaches: get and patch pods; patch pods/status; create
// pods/eviction; create and patch events.
class GangController {
 public:
  // Subscribes to `caches`, which must watch for gangs. `api` and `caches` must outlive the
  // controller. `leads` must be exact at any time.
  GangController(GangControllerOptions options, kube::Api* api, ClusterCaches* caches,
                 std::function<bool()> leads);

  // Runs until `stop`.
  void Run(const std::stop_token& stop);

  // Thread-safe from here on; return quickly.
  void OnLead();  // call when this replica becomes the leader
  GangCounts Counts() const;

 private:
  void Subscribe(ClusterCaches& caches);
  absl::Status Round();
  void TakeSnapshot();
  // Executes a step. Adds notices, and gangs whose actions all succeeded. Returns Unavailable if
  // the server did not respond.
  absl::Status Act(const GangMachine::Step& step, std::vector<Notice>& notices,
                   std::set<std::string>& carried_out);
  // Reports the decisions as Events; returns the time of the next report.
  absl::Time Tell(const std::vector<Decision>& decisions, const std::set<std::string>& carried_out);
  void Count(const std::vector<Decision>& decisions, const std::set<std::string>& carried_out);

  const GangControllerOptions options_;
  kube::Api* const api_;
  const ClusterCaches* const caches_;
  const std::function<bool()> leads_;
  Rounds rounds_;

  // Used by Run's thread only.
  GangEvents events_;
  GangMachine machine_;
  std::map<std::string, absl::Time> first_seen_;  // incomplete gangs, by key
  std::vector<PodValue> pods_now_;
  NodeTree tree_;
  std::unique_ptr<ClusterRoom> room_;  // of tree_
  topology::JoinedModel model_;        // of users
  uint64_t tree_generation_ = 0;       // generation of its nodes
  uint64_t tree_model_ = 0;            // value of model_changes_

  std::atomic<uint64_t> model_changes_{0};

  mutable std::mutex mutex_;
  GangCounts counts_;  // guarded by mutex_
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_CONTROL_GANG_CONTROLLER_H_
