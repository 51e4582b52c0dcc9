// SPDX-License-Identifier: Apache-2.0
//
// Positions of nodes by their cables. Used by FuseObservations.
#ifndef RAILHEAD_FABRIC_DISCOVERY_CABLED_PLACES_H_
#define RAILHEAD_FABRIC_DISCOVERY_CABLED_PLACES_H_

#include <map>
#include <string>
#include <vector>

#include "base/finding.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/node_rails.h"

namespace railhead::fabric {

struct CabledPlaces {
  std::vector<std::string> levels;              // outermost first; empty: no cables known
  std::vector<std::vector<std::string>> paths;  // of each node; empty: no cable known
  bool rail_optimized = false;                  // leaves have several switches
  // [level]: switches of each domain; of a leaf, one per rail.
  std::vector<std::map<std::string, std::vector<std::string>>> switches;
};

// Levels are named leaf, spine, core, tier-4 and so on. A domain is named after its first switch in
// natural order. A leaf of several switches gets the common part of their names if that contains a
// number and is unused ("su3-leaf" of su3-leaf0 to su3-leaf7). So adding spines, leaves or tiers
// after the others renames none. Marks misplaced NICs (RailNic::miswired) and adds findings.
CabledPlaces PlacesByCables(const Network& network, std::vector<NodeRails>& nodes,
                            std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_CABLED_PLACES_H_
