// SPDX-License-Identifier: Apache-2.0
//
// Which nodes to keep free for a gang that smaller ones would overtake for ever. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_RESERVATION_H_
#define RAILHEAD_OPERATOR_GANGS_RESERVATION_H_

#include <cstddef>
#include <vector>

namespace railhead::op::gangs {

// Of a node, in pods of the gang: what it has room for now, and if what runs there ended.
struct NodeOutlook {
  int now = 0;
  int at_best = 0;
};

// Indices of nodes that have room for `pods` once what runs there has ended, ascending; none when
// no nodes have. `domain_of_node`: the nodes are all of one domain.
//
// It takes the domain with most room now, of that all nodes with room (which is less than the gang
// needs, or it would have been placed), and then others. Whoever is kept away from them can only
// leave more room there, so that the choice, made anew each time, comes ever closer to what the
// gang needs and does not go to and fro.
std::vector<size_t> NodesToKeepFree(const std::vector<NodeOutlook>& nodes,
                                    const std::vector<int>& domain_of_node, int pods);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_RESERVATION_H_
