// SPDX-License-Identifier: Apache-2.0
//
// Client configuration of a pod: API server and service account. Used by the agent, the operator,
// and the CLI in a pod without a kubeconfig (kubeconfig.h).
#ifndef RAILHEAD_KUBE_AUTH_IN_CLUSTER_H_
#define RAILHEAD_KUBE_AUTH_IN_CLUSTER_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/rest_client.h"

namespace railhead::kube {

// Returns the value of an environment variable, empty if unset.
using Environment = std::function<std::string(absl::string_view name)>;

// The environment of this process.
std::string ProcessEnvironment(absl::string_view name);

struct InCluster {
  ClientOptions client;
  std::string space;  // the pod's namespace
};

// Returns the configuration of a client in a pod: address from KUBERNETES_SERVICE_HOST and _PORT;
// token, CA and namespace from the service account's files below `root` ("/" in a pod). The token
// is read for every call, as it rotates. FailedPrecondition names what is missing outside a pod.
absl::StatusOr<InCluster> InClusterConfig(const std::string& root, const Environment& environment);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_AUTH_IN_CLUSTER_H_
