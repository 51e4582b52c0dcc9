// SPDX-License-Identifier: Apache-2.0
//
// Node labels that describe a position in the network.
#ifndef RAILHEAD_FABRIC_DISCOVERY_PLACE_LABELS_H_
#define RAILHEAD_FABRIC_DISCOVERY_PLACE_LABELS_H_

#include <map>
#include <string>
#include <vector>

#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Returns the positions in a node's labels, the scheme with the most network detail first:
// Railhead's (topology.railhead.io/*), Topograph's (fabric.topograph.run/tier-N, and the older
// network.topology.nvidia.com/*), AWS's, GKE's, Kubernetes' region and zone.
std::vector<SeenPlace> PlacesOf(const std::map<std::string, std::string>& labels);

// Returns true if a scheme's labels describe the network. Kubernetes' regions and zones may be
// sites, halls or power feeds: they are a last resort, and contradict no other scheme.
bool TellsOfNetwork(const std::string& scheme);

// Return the schemes in that order, and the levels of one, outermost first.
std::vector<std::string> SchemeNames();
std::vector<std::string> LevelNames(const std::string& scheme);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_PLACE_LABELS_H_
