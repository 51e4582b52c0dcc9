// SPDX-License-Identifier: Apache-2.0
//
// Labels of nodes that say where in a network they are.
#ifndef RAILHEAD_FABRIC_DISCOVERY_PLACE_LABELS_H_
#define RAILHEAD_FABRIC_DISCOVERY_PLACE_LABELS_H_

#include <map>
#include <string>
#include <vector>

#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// The places that a node's labels name, the scheme that knows most of the network first: our own
// (topology.railhead.io/*), Topograph's (fabric.topograph.run/tier-N, and the older
// network.topology.nvidia.com/*), AWS's, GKE's, Kubernetes' region and zone.
std::vector<SeenPlace> PlacesOf(const std::map<std::string, std::string>& labels);

// Whether a scheme's labels tell of the network. Kubernetes' regions and zones may be sites, halls
// or power feeds: they place nodes where nobody knows more, and contradict nobody.
bool TellsOfNetwork(const std::string& scheme);

// The schemes in that order, and the levels of one, outermost first.
std::vector<std::string> SchemeNames();
std::vector<std::string> LevelNames(const std::string& scheme);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_PLACE_LABELS_H_
