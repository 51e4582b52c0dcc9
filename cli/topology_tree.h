// SPDX-License-Identifier: Apache-2.0
//
// Text picture of a fabric: output of `railhead topology`.
#ifndef RAILHEAD_CLI_TOPOLOGY_TREE_H_
#define RAILHEAD_CLI_TOPOLOGY_TREE_H_

#include <string>

#include "fabric/discovery/fusion.h"

namespace railhead::cli {

// Formats a fabric as a text tree. Above 64 nodes, lists only nodes with faults; above 128 leaves,
// only leaves that contain such nodes.
std::string TopologyTree(const fabric::DiscoveredFabric& found);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_TOPOLOGY_TREE_H_
