// SPDX-License-Identifier: Apache-2.0
//
// What stands above the leaves.
#ifndef RAILHEAD_FABRIC_DISCOVERY_TIERS_H_
#define RAILHEAD_FABRIC_DISCOVERY_TIERS_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fabric/discovery/leaf_rails.h"

namespace railhead::fabric {

struct Tiers {
  // Leaves first. A switch is in the tier that is one above the lowest that it has a cable to.
  // [tier][domain]: the switches of it, and the leaf groups that it holds.
  struct Domain {
    std::vector<int> switches;
    std::vector<int> groups;
  };
  std::vector<std::vector<Domain>> domains;
  std::vector<std::pair<int, int>> sideways;  // links between switches of one tier
};

// Leaf groups that reach one another over switches of a tier, or of those below it, are one domain
// of that tier; from the cores on, a tier that joins nothing is none. Links inside a tier join
// nothing: two leaves that back one another up are no tree.
Tiers FindTiers(const std::vector<SwitchOfRail>& groups, int switches,
                const std::set<std::pair<int, int>>& links);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_TIERS_H_
