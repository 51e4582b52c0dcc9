// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_TOPOLOGY_CLUSTER_NODE_H_
#define RAILHEAD_OPERATOR_TOPOLOGY_CLUSTER_NODE_H_

#include <optional>

#include "fabric/discovery/observations.h"
#include "operator/cluster/stored_node.h"
#include "operator/label_selector.h"

namespace railhead::topology {

// What the topology looks at of a Node: what it tells of the fabric, and what is published on it.
struct ClusterNode {
  fabric::SeenNode seen;
  op::Labels published;  // labels railhead.io/topology-*

  bool operator==(const ClusterNode&) const = default;
};

// Returns nothing for a node that has nothing to do with a fabric. GPUs and HCAs are counted as
// `railhead topology` counts them.
std::optional<ClusterNode> ClusterNodeOf(const op::StoredNode& node);

}  // namespace railhead::topology

#endif  // RAILHEAD_OPERATOR_TOPOLOGY_CLUSTER_NODE_H_
