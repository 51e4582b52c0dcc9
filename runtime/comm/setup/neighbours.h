// SPDX-License-Identifier: Apache-2.0
//
// With whom a rank is connected before the job starts. Everybody else it connects to when there is
// something for them (rails::Reach), so this decides only what is proven at the start, when a rail
// that does not work can still be left out. Up to kAllConnected ranks that is every pair. In larger
// worlds it is the two next around the ring of ranks, over TCP and RDMA alike: each rail of each
// rank is proven twice over, which finds what is wrong with a port, a cable or an address, while
// each more connection takes time and, over RDMA, pinned memory that the job may never need. What
// is wrong with one pair alone shows when the pair first talks: its rail counts as lost, and the
// others carry on.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_NEIGHBOURS_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_NEIGHBOURS_H_

#include <vector>

namespace railhead::comm {

inline constexpr int kAllConnected = 64;

// The ranks that `rank` talks with without a way round. In large worlds those are the ones whose
// distance around the ring is a power of two: enough for rings, for trees of any root and for
// everything that goes in log2(n) steps, and so few that a rank has at most 2 log2(n).
std::vector<int> Neighbours(int rank, int world_size);

// The ones next to it around the ring of ranks, each once.
std::vector<int> RingNeighbours(int rank, int world_size);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_NEIGHBOURS_H_
