// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_CONTROLLERS_H_
#define RAILHEAD_OPERATOR_CONTROLLERS_H_

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kube/client.h"
#include "kube/leader_elector.h"
#include "kube/monotonic.h"
#include "operator/cluster/cluster_caches.h"
#include "operator/collector/collector.h"
#include "operator/gangs/gang_controller.h"
#include "operator/metrics.h"
#include "operator/profiles/profile_feed.h"
#include "operator/profiles/profile_status_writer.h"
#include "operator/rdma_resources.h"
#include "operator/topology/topology_controller.h"

namespace railhead::op {

struct ControllersOptions {
  std::string space;     // namespace of the Lease
  std::string lease;     // its name
  std::string identity;  // of this replica; another one after every start
  // Monotonic; called by several threads.
  std::function<absl::Time()> clock = kube::MonotonicNow;
  std::function<absl::Time()> now = absl::Now;     // the time of day
  std::set<std::string> excluded_namespaces = {};  // whose pods nobody judges
  RdmaResources rdma_resources = {};               // as in InjectionConfig
  PagePoller::Fetch fetch = AskPod;
  bool verdicts = false;  // whether jobs are judged
  bool tell_missed_pods = true;
  bool memlock_raised = false;
  bool gangs = false;                                            // whether gangs are placed
  absl::Duration gang_reserve_after = absl::InfiniteDuration();  // as in InjectionConfig
  bool topology = false;  // whether the FabricTopology is kept
  bool publish_topology = false;
};

// What the operator does besides answering. Every replica keeps what admission needs, and what
// controllers decide on; the one that holds the Lease writes. A controller is a member, a thread,
// and a line each in what is done when there is something new and when this replica begins to lead.
//
// Rights needed, beside those of ClusterCaches and of the controllers: get and patch of the Lease,
// and create where it may be missing.
class Controllers {
 public:
  // `options` have an identity. `api` must outlive the controllers.
  Controllers(const ControllersOptions& options, kube::Api* api);
  ~Controllers();

  void Start();
  // Another replica may lead from now on, and admission still gets what it needs.
  void StopLeading();
  // Has all threads end, for which the destructor waits. A call of the API may take long, so cancel
  // it before.
  void Stop();

  // What is below is thread-safe.

  // For admission, at this moment; null as long as Synced is not OK.
  std::shared_ptr<const ProfileSet> Profiles() const;
  // Unavailable names what of the cluster is not known yet, and why.
  absl::Status Synced() const;
  void Report(Metrics& metrics) const;
  // Since when pods can pass admission, by the API server's clock: older ones have not missed it.
  void SetAdmissionSince(absl::Time since);

 private:
  verdict::ClusterSettings Settings() const;

  const bool tell_missed_pods_;
  const bool memlock_raised_;
  mutable std::mutex mutex_;
  absl::Time admission_since_ = absl::InfinitePast();  // guarded by mutex_

  kube::LeaderElector elector_;
  ClusterCaches caches_;
  ProfileFeed feed_;
  const std::unique_ptr<Collector> collector_;  // null where jobs are not judged
  ProfileStatusWriter status_writer_;
  const std::unique_ptr<gangs::GangController> gangs_;            // null where gangs are not served
  const std::unique_ptr<topology::TopologyController> topology_;  // null where nobody keeps it

  std::jthread feed_thread_;
  std::jthread status_thread_;
  std::jthread collector_thread_;
  std::jthread gangs_thread_;
  std::jthread topology_thread_;
  std::jthread elector_thread_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CONTROLLERS_H_
