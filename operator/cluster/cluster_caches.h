// SPDX-License-Identifier: Apache-2.0
//
// All cached objects of a replica: one cache and one watch per kind, shared by admission, verdict,
// gangs and topology. Values contain only the fields that these need. While the API server is away,
// the caches keep their content.
#ifndef RAILHEAD_OPERATOR_CLUSTER_CLUSTER_CACHES_H_
#define RAILHEAD_OPERATOR_CLUSTER_CLUSTER_CACHES_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kube/cache/informer.h"
#include "kube/client.h"
#include "operator/cluster/cached_pod.h"
#include "operator/cluster/stored_node.h"
#include "operator/cluster/watched_kind.h"
#include "operator/objects/label_selector.h"
#include "operator/objects/rdma_resources.h"
#include "operator/profiles/stored_profile.h"
#include "placement/topology/stored_topology.h"

namespace railhead::op {

struct ClusterCachesOptions {
  RdmaResources rdma_resources = {};               // as in InjectionConfig
  std::set<std::string> excluded_namespaces = {};  // pods there are ignored by the verdict
  std::set<std::string> namespaces =
      {};  // pods are watched there only; empty: in the whole cluster
  // Consumers beside admission.
  bool verdicts = false;
  bool gangs = false;
  bool topology = false;
};

// Watches railprofiles, namespaces and nodes; pods for verdicts or gangs; fabrictopologies for the
// topology. Consumers subscribe to kinds in their constructors (see watched_kind.h for threads) and
// read the caches on any thread.
//
// Rights needed: list and watch of the watched kinds, of pods in `namespaces` only. Without that
// right a namespace seems to have no pods.
class ClusterCaches {
 public:
  // `api` must outlive the caches.
  ClusterCaches(const ClusterCachesOptions& options, kube::Api* api);

  void Start();
  // Ends all watches; Join waits for them. Call Join before destroying a subscriber.
  void RequestStop();
  void Join();

  WatchedKind<StoredProfile>& profiles() { return profiles_; }
  WatchedKind<Labels>& namespaces() { return namespaces_; }
  WatchedKind<StoredNode>& nodes() { return nodes_; }
  WatchedKind<CachedPod>& pods() { return pods_; }
  WatchedKind<topology::StoredTopology>& topologies() { return topologies_; }

  // Thread-safe from here on.
  const WatchedKind<StoredProfile>& profiles() const { return profiles_; }
  const WatchedKind<Labels>& namespaces() const { return namespaces_; }
  const WatchedKind<StoredNode>& nodes() const { return nodes_; }
  const WatchedKind<CachedPod>& pods() const { return pods_; }
  const WatchedKind<topology::StoredTopology>& topologies() const { return topologies_; }

  // Returns OK once profiles, namespaces and nodes, which admission needs, were complete. Returns
  // Unavailable with the kinds that were not, and the cause.
  absl::Status Synced() const;
  // Returns the state of each watched kind.
  std::vector<kube::InformerState> States() const;

 private:
  // Calls `visit` for each watched kind.
  template <typename Self, typename Visit>
  static void ForEachKind(Self& self, Visit visit) {
    visit(self.profiles_);
    visit(self.namespaces_);
    visit(self.nodes_);
    if (self.watches_pods_) visit(self.pods_);
    if (self.watches_topologies_) visit(self.topologies_);
  }

  const bool watches_pods_;
  const bool watches_topologies_;
  PodReader pod_reader_;  // used only by the thread of pods_
  // Values of nodes; used only by the thread of nodes_.
  ListPool<fabric::SeenRail> rails_;
  LabelSet::Pool labels_;

  WatchedKind<StoredProfile> profiles_;
  WatchedKind<Labels> namespaces_;
  WatchedKind<StoredNode> nodes_;
  WatchedKind<CachedPod> pods_;
  WatchedKind<topology::StoredTopology> topologies_;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CLUSTER_CLUSTER_CACHES_H_
