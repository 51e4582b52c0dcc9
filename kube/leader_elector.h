// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_LEADER_ELECTOR_H_
#define RAILHEAD_KUBE_LEADER_ELECTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <stop_token>

#include "absl/status/status.h"
#include "kube/client.h"
#include "kube/election.h"

namespace railhead::kube {

struct ElectorCallbacks {
  // On the thread of Run; to return within a second, because nothing is renewed meanwhile.
  std::function<void()> on_started;  // this replica leads
  std::function<void()> on_stopped;  // it does no longer: its time is up, or Run is stopped
  // Every failed call; OK when the first one works again after that.
  std::function<void(const absl::Status&)> on_trouble;
};

// Election over the API. Rights needed: get, create and patch leases.
//
// A leader that pauses between Leads() and what it does about it may be one no longer: what it
// writes must carry the resourceVersion or uid that it was decided on.
class LeaderElector {
 public:
  // `options` passed Election::Check. `api` must outlive the elector.
  LeaderElector(ElectionOptions options, ObjectRef lease, Api* api, ElectorCallbacks callbacks);

  // Takes part until `stop`, then releases the lease. Once in an elector's life.
  void Run(const std::stop_token& stop);

  // Exact at any moment, also while a call of the API hangs. Thread-safe.
  bool Leads() const;

 private:
  absl::StatusOr<LeaseView> Read(absl::Duration time_allowed);
  absl::StatusOr<LeaseView> Write(const LeaseView& lease, absl::Duration time_allowed);
  void Publish(absl::Time now);
  void Tell(const absl::Status& trouble);

  const ObjectRef lease_;
  Api* const api_;
  const ElectorCallbacks callbacks_;
  Election election_;  // used by Run alone
  bool leading_ = false;
  bool troubled_ = false;
  std::atomic<int64_t> leads_until_nanos_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_LEADER_ELECTOR_H_
