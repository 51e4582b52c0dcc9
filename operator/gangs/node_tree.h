// SPDX-License-Identifier: Apache-2.0
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

// Where all nodes are, by their labels and facts, or as people say. Nothing is in use there.
struct NodeTree {
  fabric::FabricModel model;
  std::vector<NodeValue> nodes;  // [node of the model]
  // The first so many have a place. The others are one domain of each level: nobody knows how far
  // from each other they are. Where no node has a place there is one level, "cluster".
  size_t placed = 0;
};

// `given`: the fabric that people have written (topology/stored_topology.h).
NodeTree BuildTree(const std::vector<NodeValue>& nodes,
                   const std::optional<fabric::FabricModel>& given = std::nullopt);

// Puts these values in the place of those that the tree has of the same nodes, where nothing has
// changed of which nodes there are, where they are, and what their agents say of their rails.
// Returns the nodes that have changed otherwise; nothing, and the tree is as it was, where there is
// another one to be built.
std::optional<std::vector<size_t>> ReplaceNodes(const std::vector<NodeValue>& nodes,
                                                NodeTree& tree);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_NODE_TREE_H_
