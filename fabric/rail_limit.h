// SPDX-License-Identifier: Apache-2.0
//
// The one limit of rail numbers, for agent, operator, command line and runtime.
#ifndef RAILHEAD_FABRIC_RAIL_LIMIT_H_
#define RAILHEAD_FABRIC_RAIL_LIMIT_H_

#include <cstddef>

namespace railhead::fabric {

// Rails of a node, numbered from 0: as many as fit the solver's bit sets. Every reader of a rail's
// number refuses one above it: the node agent's configuration and rail map, node facts, fabric
// models, rails.json, RAILHEAD_RAILS, and what ranks tell each other.
inline constexpr size_t kMaxRails = 64;
inline constexpr int kHighestRail = static_cast<int>(kMaxRails) - 1;

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_RAIL_LIMIT_H_
