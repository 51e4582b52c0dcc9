// SPDX-License-Identifier: Apache-2.0
//
// Picture of a fabric: output of `railhead topology -o svg`.
#ifndef RAILHEAD_CLI_TOPOLOGY_SVG_H_
#define RAILHEAD_CLI_TOPOLOGY_SVG_H_

#include <string>

#include "fabric/discovery/fusion.h"

namespace railhead::cli {

// Draws a fabric as a self-contained SVG. In each leaf, a rail is a coloured line from its switch
// down through the nodes. A dot marks each NIC: empty and crossed out if dead; with a ring and a
// line to its actual switch if the cable is wrong. Findings are listed below. Above 256 nodes,
// draws only nodes with faults.
std::string TopologySvg(const fabric::DiscoveredFabric& found);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_TOPOLOGY_SVG_H_
