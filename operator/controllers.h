// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_CONTROLLERS_H_
#define RAILHEAD_OPERATOR_CONTROLLERS_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "kube/client.h"
#include "operator/cluster_caches.h"
#include "operator/metrics.h"
#include "operator/profile_feed.h"

namespace railhead::op {

// What the operator does besides answering: it keeps what admission needs.
class Controllers {
 public:
  // `api` must outlive the controllers.
  explicit Controllers(kube::Api* api);
  ~Controllers();

  void Start();
  // Has all threads end, for which the destructor waits. A call of the API may take long, so cancel
  // it before.
  void Stop();

  // What is below is thread-safe.

  // For admission, at this moment; null as long as Synced is not OK.
  std::shared_ptr<const ProfileSet> Profiles() const;
  // Unavailable names what of the cluster is not known yet, and why.
  absl::Status Synced() const;
  void Report(Metrics& metrics) const;

 private:
  ProfileFeed feed_;
  ClusterCaches caches_;
  std::jthread feed_thread_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CONTROLLERS_H_
