// SPDX-License-Identifier: Apache-2.0
//
// The objects of a cluster, out of its API server.
#ifndef RAILHEAD_CLI_CLUSTER_H_
#define RAILHEAD_CLI_CLUSTER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/client.h"
#include "operator/gangs/why.h"

namespace railhead::cli {

// As kubectl's flags of these names say.
struct ClusterFlags {
  // Empty: those of $KUBECONFIG, or ~/.kube/config; in a pod without them its service account.
  std::string kubeconfig;
  std::string context;  // empty: the current one of that file
};

// Selects the objects that the chart makes, as kube::ForEach takes it.
inline constexpr absl::string_view kOfTheChart =
    "labelSelector=app.kubernetes.io%2Fpart-of%3Drailhead";

struct ReachedCluster {
  std::unique_ptr<kube::Api> api;
  std::string space;  // the context's namespace
};

absl::StatusOr<ReachedCluster> ReachCluster(const ClusterFlags& flags);

// Nodes, pods and the FabricTopology; for `railhead why` also Events and the operator's RDMA
// resources. A cluster without the kind FabricTopology, or whose user may not read it, has none;
// one whose ConfigMaps the user may not list has the resources rdma/*.
absl::StatusOr<op::gangs::ClusterObjects> AskCluster(kube::Api& api, bool for_why);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_CLUSTER_H_
