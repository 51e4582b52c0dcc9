// SPDX-License-Identifier: Apache-2.0
//
// Which nodes share their leaf switches.
#ifndef RAILHEAD_FABRIC_DISCOVERY_LEAF_GROUPS_H_
#define RAILHEAD_FABRIC_DISCOVERY_LEAF_GROUPS_H_

#include <vector>

namespace railhead::fabric {

// Where a node's NICs are.
struct NodeCables {
  std::vector<std::vector<int>>
      rails;            // of each rail, the switches of its cables: several, or none
  int kind = 0;         // nodes of one kind can be compared rail by rail
  bool certain = true;  // else it is not known which rail is which
};

struct LeafGroups {
  std::vector<int> group_of_node;  // -1: none of its switches is known
  int count = 0;
};

// Nodes of one kind that have more than half of their cables at the same switches are one group, on
// whichever rails: so a group is found although cables in it are mixed up. Of nodes of two kinds it
// is more than half of the cables of those that have fewer, where that says which group it is: at a
// switch that several groups of one kind share, nodes of another kind are a group of their own. A
// node between two groups belongs to the one with more of its cables.
LeafGroups GroupByLeaves(const std::vector<NodeCables>& nodes);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_LEAF_GROUPS_H_
