// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COMM_NEIGHBOURS_H_
#define RAILHEAD_RUNTIME_COMM_NEIGHBOURS_H_

#include <vector>

namespace railhead::comm {

// The ranks that `rank` talks with in a ring of `world_size`, in the order in which it connects to
// them. The order makes waiting safe: the ring's edges are coloured so that no rank has two of one
// colour, and everybody goes through the colours in the same order. Where each rank connects to one
// neighbour after the other, nobody then waits for a chain of more than three.
std::vector<int> Neighbours(int rank, int world_size);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_NEIGHBOURS_H_
