// SPDX-License-Identifier: Apache-2.0
//
// Tiers of switches above the leaves, and switches with nodes that are above the leaves
// nevertheless.
#ifndef RAILHEAD_FABRIC_DISCOVERY_TIERS_H_
#define RAILHEAD_FABRIC_DISCOVERY_TIERS_H_

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fabric/discovery/leaf_rails.h"

namespace railhead::fabric {

struct Tiers {
  // Leaves first. A switch is one tier above the lowest switch it has a cable to. [tier][domain]:
  // its switches, and the leaf groups it contains.
  struct Domain {
    std::vector<int> switches;
    std::vector<int> groups;
  };
  std::vector<std::vector<Domain>> domains;
  std::vector<std::pair<int, int>> sideways;  // links between switches of one tier
};

// Leaf groups connected through switches of a tier, or below it, are one domain of that tier. From
// the cores up, a tier that connects nothing is dropped. Links within a tier do not connect: two
// leaves that back each other up do not form a tree.
Tiers FindTiers(const std::vector<SwitchOfRail>& groups, int switches,
                const std::set<std::pair<int, int>>& links);

// Nodes at the switches of a leaf.
struct GroupNodes {
  size_t count = 0;
  bool compute = false;  // at least one has GPUs, HCAs for pods or facts
};

// Returns which groups are hosts above the leaves: a subnet manager or a login host at a spine. The
// spine would be a leaf otherwise, and the tier of spines disappear. These are groups whose
// switches connect others in a tree: of groups without a node for computing, if another has one;
// else of groups with fewer nodes than cables to other switches, and half of the largest at most.
// In a torus or dragonfly no switch is above the others.
std::vector<bool> GroupsAbove(const std::vector<SwitchOfRail>& groups,
                              const std::vector<GroupNodes>& nodes, int switches,
                              const std::set<std::pair<int, int>>& links);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_TIERS_H_
