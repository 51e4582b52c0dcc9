// SPDX-License-Identifier: Apache-2.0
//
// Tree of the cluster's nodes by place, on which gangs are planned. It is kept between rounds, and
// rebuilt only if nodes, places or rails change.
#ifndef RAILHEAD_OPERATOR_GANGS_NODE_TREE_H_
#define RAILHEAD_OPERATOR_GANGS_NODE_TREE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "operator/gangs/stored_node.h"

namespace railhead::op::gangs {

using NodeValue = std::shared_ptr<const StoredNode>;

// Places of all nodes, from their labels and facts or from a user's model. Nothing in it is in use.
struct NodeTree {
  fabric::FabricModel model;
  std::vector<NodeValue> nodes;  // by node of the model
  // Number of nodes with a place; they come first. The others form one domain per level, since
  // their distances are unknown. If no node has a place, there is one level, "cluster".
  size_t placed = 0;
};

// Builds the tree. `given`: the user's model (topology/stored_topology.h).
NodeTree BuildTree(const std::vector<NodeValue>& nodes,
                   const std::optional<fabric::FabricModel>& given = std::nullopt);

// Replaces the tree's nodes by these values, if the set of nodes, their places and their rails are
// unchanged. Returns the nodes with other changes; nullopt, without a change, if the tree must be
// rebuilt.
std::optional<std::vector<size_t>> ReplaceNodes(const std::vector<NodeValue>& nodes,
                                                NodeTree& tree);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_NODE_TREE_H_
