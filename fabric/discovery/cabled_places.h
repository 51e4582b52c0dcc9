// SPDX-License-Identifier: Apache-2.0
//
// Where nodes are, by their cables.
#ifndef RAILHEAD_FABRIC_DISCOVERY_CABLED_PLACES_H_
#define RAILHEAD_FABRIC_DISCOVERY_CABLED_PLACES_H_

#include <map>
#include <string>
#include <vector>

#include "fabric/discovery/finding.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/node_rails.h"

namespace railhead::fabric {

struct CabledPlaces {
  std::vector<std::string> levels;              // outermost first; empty: no cable was seen
  std::vector<std::vector<std::string>> paths;  // of each node; empty: it has no cable in sight
  bool rail_optimized = false;                  // a leaf has several switches
  // [level]: of each domain its switches; of a leaf the one of each rail.
  std::vector<std::map<std::string, std::vector<std::string>>> switches;
};

// Levels are called leaf, spine, core, tier-4 and so on. A domain is called after the first of its
// switches in natural order; a leaf of several switches by what their names have in common, if
// there is a number in that ("su3-leaf" of su3-leaf0 to su3-leaf7) and no leaf before it has that
// name. So spines, leaves and tiers that are added behind the others rename nothing. Marks the NICs
// that are not where they should be (RailNic::miswired), and tells of them.
CabledPlaces PlacesByCables(const Network& network, std::vector<NodeRails>& nodes,
                            std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_CABLED_PLACES_H_
