// SPDX-License-Identifier: Apache-2.0
//
// Removes from the cluster what agents have reported of its nodes, and the operator's topology
// labels: after the uninstallation, or when the chart's devicePlugin.nodeFacts or
// operator.topology.publish is switched off. Used by `railhead-device-plugin forget`.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_CLEANUP_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_CLEANUP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kube/client.h"

namespace railhead::device_plugin {

struct CleanUpOptions {
  bool agents = true;    // remove what agents wrote
  bool topology = true;  // remove the operator's topology labels
  // Namespace of the agents' NodeFeatures, which are removed, too; "": they stay, as their owner,
  // the agents' DaemonSet, goes.
  std::string space = "";
};

// Removes labels, annotations and condition of NodeReporters, and labels of NodeLabeller, from all
// nodes of the cluster. Returns the names of nodes that had any. Continues after a node that cannot
// be written; the error names the first such node. Rights needed: list and patch nodes; with
// `agents`, patch nodes/status; with `space`, get and delete nodefeatures there.
absl::StatusOr<std::vector<std::string>> CleanUpNodes(kube::Api& api,
                                                      const CleanUpOptions& options = {});

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_CLEANUP_H_
