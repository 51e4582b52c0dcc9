// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_CLI_TOPOLOGY_TREE_H_
#define RAILHEAD_CLI_TOPOLOGY_TREE_H_

#include <string>

#include "fabric/discovery/fusion.h"

namespace railhead::cli {

// A fabric as a tree of lines. Of more than 64 nodes only those in trouble have lines of their own,
// of more than 128 leaves only those with such nodes.
std::string TopologyTree(const fabric::DiscoveredFabric& found);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_TOPOLOGY_TREE_H_
