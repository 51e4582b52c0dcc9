// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_CLUSTER_CACHES_H_
#define RAILHEAD_OPERATOR_CLUSTER_CACHES_H_

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kube/client.h"
#include "kube/informer.h"
#include "operator/label_selector.h"
#include "operator/stored_profile.h"

namespace railhead::op {

// What the operator knows of the cluster, kept by watches: of each object only what admission or a
// controller needs. Without the API server it stays as it was.
//
// Rights needed: list and watch railprofiles, namespaces and nodes.
class ClusterCaches {
 public:
  // `on_change`: an object has changed, or all is there for the first time; called by several
  // threads, and so briefly. `api` must outlive the caches.
  ClusterCaches(kube::Api* api, std::function<void()> on_change);

  void Start();
  void RequestStop();  // the destructor waits for it

  // What is below is thread-safe.
  const kube::Cache<StoredProfile>& profiles() const { return profiles_.cache(); }
  const kube::Cache<Labels>& namespaces() const { return namespaces_.cache(); }
  // Only nodes that a node agent has found RDMA rails on; labels as of FabricLabels.
  const kube::Cache<Labels>& nodes() const { return nodes_.cache(); }

  // OK from when every cache was complete once. Unavailable names those that were not, and why.
  absl::Status Synced() const;
  std::vector<kube::InformerState> States() const;

 private:
  kube::Informer<StoredProfile>::Callbacks ProfileCallbacks();
  kube::Informer<Labels>::Callbacks LabelCallbacks(const std::string& resource);
  // The end of a list or watch, for the log: the same trouble is told once.
  void Tell(const std::string& resource, const absl::Status& end);

  const std::function<void()> on_change_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> trouble_;  // by resource; guarded by mutex_

  kube::Informer<StoredProfile> profiles_;
  kube::Informer<Labels> namespaces_;
  kube::Informer<Labels> nodes_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CLUSTER_CACHES_H_
