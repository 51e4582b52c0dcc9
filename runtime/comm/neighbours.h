// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COMM_NEIGHBOURS_H_
#define RAILHEAD_RUNTIME_COMM_NEIGHBOURS_H_

#include <vector>

namespace railhead::comm {

// Up to so many ranks, each is connected with all others from the start. Over TCP any two of a
// larger world can still talk, but connect only then (rails::Reach).
inline constexpr int kAllConnected = 64;

// Whether two ranks talk with each other without a way round. In large worlds those do whose
// distance around the ring of ranks is a power of two: enough for rings, for trees of any root and
// for everything that goes in log2(n) steps, and so few that a rank has at most 2 log2(n).
bool Connected(int rank, int other, int world_size);

// The ranks that `rank` is connected with, in the order in which it connects to them. The order
// makes waiting safe where each rank connects to one after the other: an edge's colour is its
// ranks' numbers' exclusive or, so no rank has two of one colour; and everybody goes through the
// colours in the same order.
std::vector<int> Neighbours(int rank, int world_size);

// The two next to it around the ring of ranks, in that order.
std::vector<int> RingNeighbours(int rank, int world_size);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_NEIGHBOURS_H_
