// SPDX-License-Identifier: Apache-2.0
//
// Uninstallation: removes from the cluster's nodes what agents have reported. Used by
// `railhead-device-plugin forget`.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_CLEANUP_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_CLEANUP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/client.h"

namespace railhead::device_plugin {

// Removes labels, annotation and condition of NodeReporters from all nodes of the cluster. Returns
// the names of nodes that had any. Continues after a node that cannot be written; the error names
// the first such node. Rights needed: list and patch nodes, patch nodes/status.
absl::StatusOr<std::vector<std::string>> CleanUpNodes(kube::Api& api);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_CLEANUP_H_
