// SPDX-License-Identifier: Apache-2.0
//
// The operator's controllers and their shared caches. Each replica keeps what admission and the
// controllers need; the one that holds the Lease writes. Used by serve.cc.
#ifndef RAILHEAD_OPERATOR_CONTROL_CONTROLLERS_H_
#define RAILHEAD_OPERATOR_CONTROL_CONTROLLERS_H_

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
#include "kube/lease/leader_elector.h"
#include "kube/monotonic.h"
#include "operator/cluster/cluster_caches.h"
#include "operator/control/collector.h"
#include "operator/control/gang_controller.h"
#include "operator/control/metrics.h"
#include "operator/control/profile_feed.h"
#include "operator/control/profile_status_writer.h"
#include "operator/control/topology_controller.h"
#include "operator/objects/rdma_resources.h"

namespace railhead::op {

struct ControllersOptions {
  std::string space;     // namespace of the Lease
  std::string lease;     // its name
  std::string identity;  // of this replica; differs after each start
  // Monotonic; called concurrently.
  std::function<absl::Time()> clock = kube::MonotonicNow;
  std::function<absl::Time()> now = absl::Now;  // wall clock
  // The API server's clock, for ages of gangs.
  std::function<absl::Time()> server_time = kube::SteadyTimeOfDay();
  std::set<std::string> excluded_namespaces = {};  // pods there are not diagnosed
  std::set<std::string> namespaces = {};           // as in InjectionConfig
  RdmaResources rdma_resources = {};               // as in InjectionConfig
  PagePoller::Fetch fetch = AskPod;
  bool verdicts = false;  // diagnose jobs
  bool tell_missed_pods = true;
  bool memlock_raised = false;
  bool gangs = false;                                            // place gangs
  absl::Duration gang_reserve_after = absl::InfiniteDuration();  // as in InjectionConfig
  bool topology = false;                                         // maintain the FabricTopology
  bool publish_topology = false;
};

// To add a controller: a member, a thread, one line for changes, and one line for the start of
// leadership.
//
// Rights needed, beside those of ClusterCaches and the controllers: get and patch of the Lease;
// create if it may be missing.
class Controllers {
 public:
  // `options` must contain an identity. `api` must outlive the controllers.
  Controllers(const ControllersOptions& options, kube::Api* api);
  ~Controllers();

  void Start();
  // Releases leadership; admission is still served.
  void StopLeading();
  // Ends all threads; the destructor waits for them. API calls may take long, so cancel them first.
  void Stop();

  // Thread-safe from here on.

  // Returns the current profiles for admission; null while Synced is not OK.
  std::shared_ptr<const ProfileSet> Profiles() const;
  // Returns Unavailable with the part of the cluster that is not known yet, and the cause.
  absl::Status Synced() const;
  void Report(Metrics& metrics) const;
  // Sets the time since which pods can pass admission, by the API server's clock. Older pods have
  // not missed it.
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
  const std::unique_ptr<Collector> collector_;  // null if verdicts are off
  ProfileStatusWriter status_writer_;
  const std::unique_ptr<gangs::GangController> gangs_;            // null if gangs are off
  const std::unique_ptr<topology::TopologyController> topology_;  // null if topology is off

  std::jthread feed_thread_;
  std::jthread status_thread_;
  std::jthread collector_thread_;
  std::jthread gangs_thread_;
  std::jthread topology_thread_;
  std::jthread elector_thread_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CONTROL_CONTROLLERS_H_
