// SPDX-License-Identifier: Apache-2.0
//
// The one limit of rail numbers, for agent, operator, command line and runtime.
#ifndef RAILHEAD_FABRIC_RAIL_LIMIT_H_
#define RAILHEAD_FABRIC_RAIL_LIMIT_H_

#include <cstddef>

namespace railhead::fabric {

// Maximum number of rails of a node, numbered from 0: the solver's bit sets hold 64. All readers of
// rail numbers reject larger ones: the node agent's configuration and rail map, node facts, fabric
// models, rails.json, RAILHEAD_RAILS, and messages between ranks.
inline constexpr size_t kMaxRails = 64;
inline constexpr int kHighestRail = static_cast<int>(kMaxRails) - 1;

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_RAIL_LIMIT_H_
