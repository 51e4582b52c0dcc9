// SPDX-License-Identifier: Apache-2.0
//
// Which nodes are machines of one kind, so that their rails can be compared.
#ifndef RAILHEAD_FABRIC_DISCOVERY_MACHINE_KINDS_H_
#define RAILHEAD_FABRIC_DISCOVERY_MACHINE_KINDS_H_

#include <vector>

#include "fabric/discovery/node_rails.h"

namespace railhead::fabric {

// Sets NodeRails::kind. Nodes are of one kind when they have NICs of the same names on the same
// rails. A node whose names no other has is of the kind of most nodes with the same rails, or else
// is one of its own. Nodes without NICs, or whose rails are not certain, are of none.
void NumberKinds(std::vector<NodeRails>& nodes);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_MACHINE_KINDS_H_
