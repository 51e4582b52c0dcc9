// SPDX-License-Identifier: Apache-2.0
//
// Detects switches of management and storage networks, by the nodes' facts.
#ifndef RAILHEAD_FABRIC_DISCOVERY_OTHER_NETWORKS_H_
#define RAILHEAD_FABRIC_DISCOVERY_OTHER_NETWORKS_H_

#include <vector>

#include "base/finding.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Management ports of leaves and spines are all at a few switches, which therefore seem to connect
// everything. Such a switch is recognized by its nodes: most of those with facts have no rail
// there, whatever their number of NICs. (A pair of switches for compute and storage has a rail of
// every node.) If no node with facts is there, nodes without facts count whose NICs are all NICs of
// a machine with facts: none of their NICs there has a rail's name on any node. Names of other
// kinds of machines are not evidence. Its links to switches, and NICs at it that are not rails, are
// removed from `network`, and reported; rails stay, so that a cable plugged in there by mistake is
// found. Without facts nothing is removed.
void LeaveOtherNetworksOut(const Observations& seen, Network& network,
                           std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_OTHER_NETWORKS_H_
