// SPDX-License-Identifier: Apache-2.0
//
// Switches of the management network or of storage, told by the nodes' agents.
#ifndef RAILHEAD_FABRIC_DISCOVERY_OTHER_NETWORKS_H_
#define RAILHEAD_FABRIC_DISCOVERY_OTHER_NETWORKS_H_

#include <vector>

#include "fabric/discovery/finding.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/observations.h"

namespace railhead::fabric {

// Management ports of leaves and spines are all at a few switches, which so look as if they joined
// everything. A switch is known for such a one by its nodes: most of those with facts have no rail
// there, whatever number of NICs each of them has. (A pair of switches that carries compute and
// storage has a rail of every node.) Where no node with facts is, silent nodes count that have no
// NICs but those of a machine with facts: of their NICs there, none has a rail's name on any node.
// The names of another kind of machine say nothing. Its links to switches and the NICs at it that
// are no rails are taken out of `network`, which is told; a rail's stay, so that a cable that hangs
// there by mistake is found. Without facts nothing is taken out.
void LeaveOtherNetworksOut(const Observations& seen, Network& network,
                           std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_OTHER_NETWORKS_H_
