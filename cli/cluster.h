// SPDX-License-Identifier: Apache-2.0
//
// Access to a cluster's API server for commands of `railhead`.
#ifndef RAILHEAD_CLI_CLUSTER_H_
#define RAILHEAD_CLI_CLUSTER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/client.h"
#include "kube/server_clock.h"
#include "operator/gangs/why.h"

namespace railhead::cli {

// As kubectl's flags of these names.
struct ClusterFlags {
  // Empty: $KUBECONFIG or ~/.kube/config; in a pod without these, its service account.
  std::string kubeconfig;
  std::string context;  // empty: the current context of that file
};

// Selector of the chart's objects, in the format of kube::ForEach.
inline constexpr absl::string_view kOfTheChart =
    "labelSelector=app.kubernetes.io%2Fpart-of%3Drailhead";

struct ReachedCluster {
  // The API server's time of day, for ages of what it has stamped: valid after the first response,
  // and until then this machine's. Fed by `api`, so it outlives that.
  std::unique_ptr<kube::ServerClock> clock;
  std::unique_ptr<kube::Api> api;
  std::string space;  // namespace of the context
};

absl::StatusOr<ReachedCluster> ReachCluster(const ClusterFlags& flags);

// Lists nodes, pods, FabricTopologies and, if asked, Events; reads the operator's RDMA resources.
// Without the kind FabricTopology, or the right to read it, the result has none. Without the right
// to list ConfigMaps, the RDMA resources are rdma/*.
absl::StatusOr<op::gangs::ClusterObjects> AskCluster(kube::Api& api, bool with_events);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_CLUSTER_H_
