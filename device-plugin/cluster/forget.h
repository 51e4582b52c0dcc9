// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_FORGET_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_FORGET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/client.h"

namespace railhead::device_plugin {

// Takes from every node of the cluster what NodeReporters have written about it: labels, annotation
// and condition. Returns the names of the nodes that had something. Goes on after a node that
// cannot be written; the error then names the first such node. Rights needed: list and patch nodes,
// patch nodes/status.
absl::StatusOr<std::vector<std::string>> ForgetNodes(kube::Api& api);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_FORGET_H_
