// SPDX-License-Identifier: Apache-2.0
//
// Which cables are not where they should be.
#ifndef RAILHEAD_FABRIC_DISCOVERY_CABLE_CHECK_H_
#define RAILHEAD_FABRIC_DISCOVERY_CABLE_CHECK_H_

#include <vector>

#include "fabric/discovery/finding.h"
#include "fabric/discovery/leaf_groups.h"
#include "fabric/discovery/leaf_rails.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/node_rails.h"

namespace railhead::fabric {

// Marks the NICs (RailNic::miswired) that have a cable where most nodes of their kind and leaf have
// none, or at a switch of another leaf, and tells of them; all cables of a bond are looked at.
// Tells also where as many nodes say this as that, of rails that are up without a cable in sight,
// and of nodes that no other is like and whose rails are at other switches than those of their
// neighbours. `leaves` has of each group all its switches. Nodes whose rails are not certain are
// left alone.
void CheckCables(const Network& network, const LeafGroups& groups, const LeafRails& rails,
                 const std::vector<SwitchOfRail>& leaves, std::vector<NodeRails>& nodes,
                 std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_CABLE_CHECK_H_
