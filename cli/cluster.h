// SPDX-License-Identifier: Apache-2.0
//
// The objects of a cluster, out of its API server.
#ifndef RAILHEAD_CLI_CLUSTER_H_
#define RAILHEAD_CLI_CLUSTER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kube/client.h"
#include "operator/gangs/why.h"

namespace railhead::cli {

// How to reach the cluster of a kubeconfig; empty: of $KUBECONFIG, or ~/.kube/config.
absl::StatusOr<std::unique_ptr<kube::Api>> ReachCluster(std::string kubeconfig);

// Nodes, pods and the FabricTopology; with `events` these, too. A cluster without the kind
// FabricTopology, or whose user may not read it, has none.
absl::StatusOr<op::gangs::ClusterObjects> AskCluster(kube::Api& api, bool events);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_CLUSTER_H_
