// SPDX-License-Identifier: Apache-2.0
//
// Detects miswired cables.
#ifndef RAILHEAD_FABRIC_DISCOVERY_CABLE_CHECK_H_
#define RAILHEAD_FABRIC_DISCOVERY_CABLE_CHECK_H_

#include <vector>

#include "base/finding.h"
#include "fabric/discovery/leaf_groups.h"
#include "fabric/discovery/leaf_rails.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/node_rails.h"

namespace railhead::fabric {

// Marks NICs (RailNic::miswired) with a cable where most nodes of their kind and leaf have none, or
// at a switch of another leaf, and adds findings; checks all cables of a bond. Also reports ties,
// rails that are up without a known cable, and nodes without a comparable one whose rails are at
// other switches than their neighbours'. `leaves` has all switches of each group. Ignores nodes
// with uncertain rails.
void CheckCables(const Network& network, const LeafGroups& groups, const LeafRails& rails,
                 const std::vector<SwitchOfRail>& leaves, std::vector<NodeRails>& nodes,
                 std::vector<Finding>& findings);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_CABLE_CHECK_H_
