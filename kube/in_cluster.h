// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_KUBE_IN_CLUSTER_H_
#define RAILHEAD_KUBE_IN_CLUSTER_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/rest_client.h"

namespace railhead::kube {

// The value of an environment variable, empty when it is not set.
using Environment = std::function<std::string(absl::string_view name)>;

struct InCluster {
  ClientOptions client;
  std::string space;  // the pod's namespace
};

// How a pod reaches its API server: address from KUBERNETES_SERVICE_HOST and _PORT; token, CA and
// namespace from the service account's files below `root` ("/" in a pod). The token is read anew
// for every call. FailedPrecondition says what a process outside a pod lacks.
absl::StatusOr<InCluster> InClusterConfig(const std::string& root, const Environment& environment);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_IN_CLUSTER_H_
