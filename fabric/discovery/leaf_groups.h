// SPDX-License-Identifier: Apache-2.0
//
// Groups nodes by their leaf switches.
#ifndef RAILHEAD_FABRIC_DISCOVERY_LEAF_GROUPS_H_
#define RAILHEAD_FABRIC_DISCOVERY_LEAF_GROUPS_H_

#include <vector>

namespace railhead::fabric {

// Cables of a node.
struct NodeCables {
  std::vector<std::vector<int>>
      rails;            // of each rail, the switches of its cables: several, or none
  int kind = 0;         // per rail, the switches of its cables: any number
  bool certain = true;  // false: the assignment of rails is unknown
};

struct LeafGroups {
  std::vector<int> group_of_node;  // -1: none of its switches is known
  int count = 0;
};

// Nodes of one kind with more than half of their cables at the same switches form a group, on any
// rails: so miswired cables do not split a group. For nodes of two kinds, more than half of the
// cables of the node with fewer decide, if that determines one group: at a switch shared by several
// groups of one kind, nodes of another kind are a separate group. A node between two groups joins
// the one with more of its cables.
LeafGroups GroupByLeaves(const std::vector<NodeCables>& nodes);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_LEAF_GROUPS_H_
