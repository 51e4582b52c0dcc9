// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_PLACEMENT_TOPOLOGY_CLUSTER_NODE_H_
#define RAILHEAD_PLACEMENT_TOPOLOGY_CLUSTER_NODE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "fabric/discovery/observations.h"
#include "kube/json.h"

namespace railhead::topology {

// What is kept of a Node: what it tells of the fabric, and what is published on it.
struct ClusterNode {
  fabric::SeenNode seen;
  std::map<std::string, std::string> published;  // labels railhead.io/topology-*

  bool operator==(const ClusterNode&) const = default;
};

// Nothing for a node that has nothing to do with a fabric. It is read as `railhead topology` reads
// it; one that cannot be read is one whose facts cannot (SeenNode::facts_fault).
std::optional<ClusterNode> ReadClusterNode(const kube::Json& node);

using NodeValue = std::shared_ptr<const ClusterNode>;

}  // namespace railhead::topology

#endif  // RAILHEAD_PLACEMENT_TOPOLOGY_CLUSTER_NODE_H_
