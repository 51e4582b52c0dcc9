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
#include "operator/profiles/stored_node.h"
#include "operator/profiles/stored_profile.h"
#include "operator/rdma_resources.h"

namespace railhead::op {

// What the operator knows of the cluster, kept by watches: of each object only what admission or a
// controller needs. Without the API server it stays as it was.
//
// Rights needed: list and watch railprofiles, namespaces and nodes.
class ClusterCaches {
 public:
  // A node has changed, in whatever; null where it was not there before, or is not now.
  using OnNode = kube::Cache<StoredNode>::OnChange;
  // `on_change`: what admission looks at has changed, or all is there for the first time. Called by
  // several threads, `on_node` by one; both briefly. `api` must outlive the caches.
  ClusterCaches(kube::Api* api, RdmaResources rdma, std::function<void()> on_change,
                OnNode on_node);

  void Start();
  void RequestStop();  // the destructor waits for it

  // What is below is thread-safe.
  const kube::Cache<StoredProfile>& profiles() const { return profiles_.cache(); }
  const kube::Cache<Labels>& namespaces() const { return namespaces_.cache(); }
  const kube::Cache<StoredNode>& nodes() const { return nodes_.cache(); }

  // OK from when every cache was complete once. Unavailable names those that were not, and why.
  absl::Status Synced() const;
  std::vector<kube::InformerState> States() const;

 private:
  kube::Informer<StoredProfile>::Callbacks ProfileCallbacks();
  kube::Informer<Labels>::Callbacks NamespaceCallbacks();
  kube::Informer<StoredNode>::Callbacks NodeCallbacks();
  // The end of a list or watch, for the log: the same trouble is told once.
  void Tell(const std::string& resource, const absl::Status& end);

  const std::function<void()> on_change_;
  const OnNode on_node_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> trouble_;  // by resource; guarded by mutex_

  kube::Informer<StoredProfile> profiles_;
  kube::Informer<Labels> namespaces_;
  kube::Informer<StoredNode> nodes_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CLUSTER_CACHES_H_
