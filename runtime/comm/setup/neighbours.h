// SPDX-License-Identifier: Apache-2.0
//
// Peers to which a rank connects before the job starts. It connects to other peers on first use
// (rails::Reach). This set therefore only determines which connections are verified while a rail
// that does not work can still be excluded. In worlds of up to kAllConnected ranks, that is every
// pair.
//
// In larger worlds it is the two neighbours on the ring of ranks, over TCP and RDMA alike. This
// verifies each rail of each rank twice, which detects errors of a port, a cable or an address.
// More connections would take time and, over RDMA, pinned memory that the job may never need. An
// error that affects only one pair appears when the pair first communicates: its rail counts as
// lost, and the other rails continue.
//
// Among ranks of which every pair has connected over the same rails in another communicator, it is
// empty: programs make dozens of communicators, and many are never used between all ranks.
#ifndef RAILHEAD_RUNTIME_COMM_SETUP_NEIGHBOURS_H_
#define RAILHEAD_RUNTIME_COMM_SETUP_NEIGHBOURS_H_

#include <vector>

namespace railhead::comm {

inline constexpr int kAllConnected = 64;

// Returns the ranks with which `rank` communicates directly. In large worlds these are the ranks
// whose distance on the ring is a power of two: sufficient for rings, for trees of any root and for
// algorithms of log2(n) steps, and at most 2 log2(n) ranks.
std::vector<int> Neighbours(int rank, int world_size);

// Returns the next ranks on the ring of ranks, without duplicates.
std::vector<int> RingNeighbours(int rank, int world_size);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_SETUP_NEIGHBOURS_H_
