// SPDX-License-Identifier: Apache-2.0
//
// Which nodes share their leaf switches, and which cables do not fit into that.
#ifndef RAILHEAD_FABRIC_DISCOVERY_LEAF_GROUPS_H_
#define RAILHEAD_FABRIC_DISCOVERY_LEAF_GROUPS_H_

#include <set>
#include <vector>

namespace railhead::fabric {

// At each rail the switch that a node's NIC is at; -1 where that is not known.
using SwitchOfRail = std::vector<int>;

struct LeafGroups {
  std::vector<int> group_of_node;      // -1: none of its switches is known
  std::vector<SwitchOfRail> switches;  // [group]: where the NICs of most of its nodes are
  // [group]: the rails on which no switch has more than half of its nodes' NICs.
  std::vector<std::set<int>> split;
};

// Nodes that have more than half of their cables at the same switches are one group, on whichever
// rails: so a group is found although cables in it are mixed up. What is right is then decided rail
// by rail, by most nodes of the group (for as many, by the lower number of the switch, and it is
// split). A node between two groups belongs to the one with more of its cables. All rows have the
// same length.
// Of nodes whose rails are not certain, the switches alone count where the group has others.
LeafGroups GroupByLeaves(const std::vector<SwitchOfRail>& nodes, const std::vector<bool>& certain);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_LEAF_GROUPS_H_
