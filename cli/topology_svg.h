// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_CLI_TOPOLOGY_SVG_H_
#define RAILHEAD_CLI_TOPOLOGY_SVG_H_

#include <string>

#include "fabric/discovery/fusion.h"

namespace railhead::cli {

// A fabric as a picture: SVG that needs nothing else. In each leaf a rail is a coloured line from
// its switch down through the nodes, with a dot for each NIC: empty and crossed where it is dead,
// and ringed with a line to where its cable leads where that is wrong. Below stand the findings. Of
// more than 256 nodes only those in trouble are drawn.
std::string TopologySvg(const fabric::DiscoveredFabric& found);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_TOPOLOGY_SVG_H_
