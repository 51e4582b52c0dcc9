// SPDX-License-Identifier: Apache-2.0
//
// Positions of nodes by the labels of one scheme. Used by FuseObservations.
#ifndef RAILHEAD_FABRIC_DISCOVERY_LABEL_PLACES_H_
#define RAILHEAD_FABRIC_DISCOVERY_LABEL_PLACES_H_

#include <map>
#include <string>
#include <vector>

#include "base/finding.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

struct LabelPlaces {
  std::string scheme;                                       // empty: no node has labels
  std::vector<std::string> levels;                          // outermost first
  std::map<std::string, std::vector<std::string>> of_node;  // one domain per level
};

// Uses one scheme for all nodes (label_schemes.h) and, of it, the levels that most nodes in the
// fabric have. Nodes that lack a level have no position; other levels are ignored. If a few nodes
// disagree with the majority about a domain's parent, the majority is right, and that is a finding.
// But if several parents have a domain of this name with nodes of their own (leaf 0 of each spine),
// it names one domain in each: the first in natural order keeps the name, the others get their
// parent's name as prefix ("s1-l0"), so that new domains rename none. A cycle (domains that contain
// each other, or themselves) is a finding.
LabelPlaces PlacesByLabels(const std::vector<SeenNode>& nodes, std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_LABEL_PLACES_H_
