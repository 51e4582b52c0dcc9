// SPDX-License-Identifier: Apache-2.0
//
// Several schemes of labels on the nodes of one cluster.
#ifndef RAILHEAD_FABRIC_DISCOVERY_LABEL_SCHEMES_H_
#define RAILHEAD_FABRIC_DISCOVERY_LABEL_SCHEMES_H_

#include <string>
#include <vector>

#include "fabric/discovery/finding.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// A node's labels of one scheme; null where it has none.
const SeenPlace* PlaceOf(const SeenNode& node, const std::string& scheme);

// Nodes with labels that are in the fabric: with GPUs, HCAs or facts; all of them where none has
// any.
std::vector<const SeenNode*> CountingNodes(const std::vector<SeenNode>& nodes);

// The scheme for all nodes: of those that most nodes have labels of, the one that knows most of the
// network; where there is none, the one that more nodes have than any other. Nodes without GPUs,
// HCAs and facts, such as the control plane's, do not count where there are others. Empty: no node
// has labels.
std::string ChooseScheme(const std::vector<SeenNode>& nodes);

// Tells where labels of another scheme contradict the chosen one's: a domain of each share nodes,
// and neither lies in the other. What divides the network further, or less far, is no
// contradiction, nor is a scheme that does not tell of the network. Tells as well who has labels of
// other schemes alone.
void TellOtherSchemes(const std::vector<SeenNode>& nodes, const std::string& chosen,
                      std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_LABEL_SCHEMES_H_
