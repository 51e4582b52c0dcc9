// SPDX-License-Identifier: Apache-2.0
//
// Nodes as topology discovery needs them, made from the operator's cached Nodes.
#ifndef RAILHEAD_OPERATOR_TOPOLOGY_CLUSTER_NODE_H_
#define RAILHEAD_OPERATOR_TOPOLOGY_CLUSTER_NODE_H_

#include <optional>

#include "fabric/discovery/observations.h"
#include "operator/cluster/stored_node.h"
#include "operator/objects/label_selector.h"

namespace railhead::topology {

// The fields of a Node for the topology: its facts, and the labels published on it.
struct ClusterNode {
  fabric::SeenNode seen;
  op::Labels published;  // labels railhead.io/topology-*

  bool operator==(const ClusterNode&) const = default;
};

// Returns nullopt for a node that has nothing to do with a fabric. Counts GPUs and HCAs as
// `railhead topology` does.
std::optional<ClusterNode> ClusterNodeOf(const op::StoredNode& node);

}  // namespace railhead::topology

#endif  // RAILHEAD_OPERATOR_TOPOLOGY_CLUSTER_NODE_H_
