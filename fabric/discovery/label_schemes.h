// SPDX-License-Identifier: Apache-2.0
//
// Choice among several label schemes on the nodes of one cluster.
#ifndef RAILHEAD_FABRIC_DISCOVERY_LABEL_SCHEMES_H_
#define RAILHEAD_FABRIC_DISCOVERY_LABEL_SCHEMES_H_

#include <string>
#include <vector>

#include "base/finding.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Returns a node's position in one scheme; null if it has no such labels.
const SeenPlace* PlaceOf(const SeenNode& node, const std::string& scheme);

// Returns the labelled nodes of the fabric: with GPUs, HCAs or facts; all labelled nodes if there
// are none.
std::vector<const SeenNode*> CountingNodes(const std::vector<SeenNode>& nodes);

// Returns the scheme for all nodes: among those that most nodes have, the one with the most network
// detail; otherwise the most frequent. Nodes without GPUs, HCAs and facts, such as the control
// plane's, are ignored if there are others. Empty: no node has labels.
std::string ChooseScheme(const std::vector<SeenNode>& nodes);

// Reports contradictions of other schemes with the chosen one: two domains that share nodes without
// one containing the other. A finer or coarser division is not a contradiction; schemes without
// network information are ignored. Also reports nodes that have only other schemes' labels.
void TellOtherSchemes(const std::vector<SeenNode>& nodes, const std::string& chosen,
                      std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_LABEL_SCHEMES_H_
