// SPDX-License-Identifier: Apache-2.0
//
// Leader election over the API: one replica at a time holds a Lease. Adds API calls to the pure
// state machine of election.h. Used by the operator.
#ifndef RAILHEAD_KUBE_LEASE_LEADER_ELECTOR_H_
#define RAILHEAD_KUBE_LEASE_LEADER_ELECTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <stop_token>

#include "absl/status/status.h"
#include "kube/client.h"
#include "kube/lease/election.h"

namespace railhead::kube {

struct ElectorCallbacks {
  // Called on the thread of Run. Must return within a second, as the lease is not renewed before.
  std::function<void()> on_started;  // this replica leads
  std::function<void()> on_stopped;  // leadership ended: expired, or Run was stopped
  // Called with each error, and with OK at the first success after an error.
  std::function<void(const absl::Status&)> on_trouble;
};

// Rights needed: get, create and patch leases.
//
// Leadership may end between Leads() and an action that depends on it: writes must carry the
// resourceVersion or uid that they were decided on.
class LeaderElector {
 public:
  // `options` must have passed Election::Check. `api` must outlive the elector. `labels` are those
  // of a Lease that the elector creates.
  LeaderElector(ElectionOptions options, ObjectRef lease, Api* api, ElectorCallbacks callbacks,
                Json labels = Json::object());

  // Takes part until `stop`, then releases the lease. Call once.
  void Run(const std::stop_token& stop);

  // Exact at any time, even while an API call hangs. Thread-safe.
  bool Leads() const;

 private:
  absl::StatusOr<LeaseView> Read(absl::Duration time_allowed);
  absl::StatusOr<LeaseView> Write(const LeaseView& lease, absl::Duration time_allowed);
  void Publish(absl::Time now);
  void Tell(const absl::Status& trouble);

  const ObjectRef lease_;
  Api* const api_;
  const ElectorCallbacks callbacks_;
  const Json labels_;
  Election election_;  // used by Run only
  bool leading_ = false;
  bool troubled_ = false;
  std::atomic<int64_t> leads_until_nanos_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_LEASE_LEADER_ELECTOR_H_
