// SPDX-License-Identifier: Apache-2.0
//
// Detects NICs of other networks (storage, management) among the rails.
#ifndef RAILHEAD_FABRIC_DISCOVERY_OUTSIDERS_H_
#define RAILHEAD_FABRIC_DISCOVERY_OUTSIDERS_H_

#include <vector>

#include "base/finding.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/node_rails.h"

namespace railhead::fabric {

// Nodes whose rails were determined the same way. Machines of different kinds have storage NICs at
// different positions, as may machines with equal NIC names: rails are compared among nodes of one
// kind with the same wiring.
using Rows = std::vector<NodeRails*>;

// Outsiders are rails whose NICs are mostly in networks (connected switches) that most rails are
// not in. If no kind of rail is more than half of all, there are no outsiders: planes look alike;
// some that look alike are reported.

// Removes outsiders from nodes without facts of their rails. Nodes that cannot be compared by
// position (uncertain rails, or the only node of its kind) lose NICs in networks where others have
// only outsiders.
void LeaveOutsidersOut(const Network& network, const Rows& rows, std::vector<Finding>& findings);

// Reports outsiders that agents offer for compute, and slow rails.
void TellOutsiders(const Network& network, const Rows& rows, std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_OUTSIDERS_H_
