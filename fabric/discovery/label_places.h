// SPDX-License-Identifier: Apache-2.0
//
// Where nodes are, by the labels of one scheme.
#ifndef RAILHEAD_FABRIC_DISCOVERY_LABEL_PLACES_H_
#define RAILHEAD_FABRIC_DISCOVERY_LABEL_PLACES_H_

#include <map>
#include <string>
#include <vector>

#include "fabric/discovery/finding.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

struct LabelPlaces {
  std::string scheme;                                       // empty: no node has labels
  std::vector<std::string> levels;                          // outermost first
  std::map<std::string, std::vector<std::string>> of_node;  // a domain of each level
};

// One scheme counts for all nodes (label_schemes.h), and of it the levels that most nodes in the
// fabric have; who lacks one of them has no place, and what somebody has beyond them is not looked
// at. Where a few nodes disagree with most about what a domain lies in, most of them are right,
// which is a finding. But where several domains around a value have it for nodes of their own (leaf
// 0 of each spine), it names a domain in each: the first in natural order has that name, the others
// that of what is around them before it ("s1-l0"), so that no domain is called otherwise when there
// are more. Where nodes disagree about what lies in what, or a domain lies in itself, that is a
// cycle, and a finding.
LabelPlaces PlacesByLabels(const std::vector<SeenNode>& nodes, std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_LABEL_PLACES_H_
