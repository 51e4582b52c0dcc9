// SPDX-License-Identifier: Apache-2.0
//
// Rails that are in a network of their own: storage's, or the management network.
#ifndef RAILHEAD_FABRIC_DISCOVERY_OUTSIDERS_H_
#define RAILHEAD_FABRIC_DISCOVERY_OUTSIDERS_H_

#include <vector>

#include "fabric/discovery/finding.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/node_rails.h"

namespace railhead::fabric {

// Nodes whose rails are found in the same way. Machines of different kinds have storage's NICs at
// different positions, and so may have machines whose NICs have the same names: rails are compared
// among nodes of one kind that are wired alike.
using Rows = std::vector<NodeRails*>;

// Outsiders are rails whose NICs are for the most part in networks (switches that are joined) that
// most rails are not in. Where no kind of rails is more than half of all, there is none: planes are
// all alike, and where some of them are alike, that is told.

// Takes them out of nodes that have told nothing of their rails. Nodes of which nothing is known by
// position (their rails are not certain, or no other node is of their kind) lose what is in
// networks where others have outsiders alone.
void LeaveOutsidersOut(const Network& network, const Rows& rows, std::vector<Finding>& findings);

// Tells of those that agents offer for compute, and of rails that are slow.
void TellOutsiders(const Network& network, const Rows& rows, std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_OUTSIDERS_H_
