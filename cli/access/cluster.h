// SPDX-License-Identifier: Apache-2.0
//
// Access to a cluster's API server for commands of `railhead`.
#ifndef RAILHEAD_CLI_ACCESS_CLUSTER_H_
#define RAILHEAD_CLI_ACCESS_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kube/client.h"
#include "kube/json.h"
#include "kube/server_clock.h"
#include "operator/gangs/why.h"
#include "operator/objects/rdma_resources.h"

namespace railhead::cli {

// As kubectl's flags of these names.
struct ClusterFlags {
  // Empty: $KUBECONFIG or ~/.kube/config; in a pod without these, its service account.
  std::string kubeconfig;
  std::string context;  // empty: the current context of that file
};

struct ReachedCluster {
  // The API server's time of day, for ages of what it has stamped: valid after the first response,
  // and until then this machine's. Fed by `api`, so it outlives that.
  std::unique_ptr<kube::ServerClock> clock;
  std::unique_ptr<kube::Api> api;
  std::string space;  // namespace of the context
};

absl::StatusOr<ReachedCluster> ReachCluster(const ClusterFlags& flags);

// Visits the objects of a collection with their apiVersion and kind, which items of a list lack.
absl::Status ForEachWithKind(kube::Api& api, const kube::ObjectRef& all, const char* kind,
                             const std::function<absl::Status(kube::Json object)>& visit);
// Reads the operator's RDMA resources from its configuration in the release's namespace; rdma/*
// without the right to find that, or to list ConfigMaps there.
absl::StatusOr<op::RdmaResources> AskRdmaResources(kube::Api& api);
// Lists FabricTopologies; none without the kind, or the right to read it.
absl::StatusOr<std::vector<kube::Json>> AskTopologies(kube::Api& api);
// Lists nodes, pods, Events and FabricTopologies, and reads the operator's RDMA resources.
absl::StatusOr<op::gangs::ClusterObjects> AskCluster(kube::Api& api);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_ACCESS_CLUSTER_H_
