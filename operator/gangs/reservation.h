// SPDX-License-Identifier: Apache-2.0
//
// Backfill reservation: nodes to keep free for a gang that smaller ones would overtake
// indefinitely. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_RESERVATION_H_
#define RAILHEAD_OPERATOR_GANGS_RESERVATION_H_

#include <cstddef>
#include <vector>

namespace railhead::op::gangs {

// Room on a node, in pods of the gang: now, and if everything there ended.
struct NodeOutlook {
  int now = 0;
  int at_best = 0;
};

// Returns nodes that have room for `pods` once everything there has ended, as ascending indices;
// empty if none suffice. `domain_of_node`: all nodes must be in one domain.
//
// Uses the domain with most room now: all of its nodes with room (not enough, else the gang would
// be placed), then others. Gangs that are kept away from these nodes can only leave more room
// there. So the choice, repeated each round, converges and does not oscillate.
std::vector<size_t> NodesToKeepFree(const std::vector<NodeOutlook>& nodes,
                                    const std::vector<int>& domain_of_node, int pods);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_RESERVATION_H_
