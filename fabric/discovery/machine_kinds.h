// SPDX-License-Identifier: Apache-2.0
//
// Groups nodes into kinds of machines whose rails are comparable.
#ifndef RAILHEAD_FABRIC_DISCOVERY_MACHINE_KINDS_H_
#define RAILHEAD_FABRIC_DISCOVERY_MACHINE_KINDS_H_

#include <vector>

#include "fabric/discovery/node_rails.h"

namespace railhead::fabric {

// Sets NodeRails::kind. Nodes are of one kind if they have NICs of the same names on the same
// rails. A node with unique names joins the kind of most nodes with the same rails, or else is its
// own kind. Nodes without NICs or with uncertain rails have no kind.
void NumberKinds(std::vector<NodeRails>& nodes);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_MACHINE_KINDS_H_
