// SPDX-License-Identifier: Apache-2.0
//
// The tree over which ranks talk: rank 0 is its root, and the children of rank r are 4r+1 to 4r+4.
//
// Four children, because then no rank ever has more than a handful of connections and of messages
// to send, whatever the world's size, and the way from anywhere to the root is short: 4 steps for
// 256 ranks, 6 for 4,096. (With two children the way is twice as long; in a binomial tree the root
// has log n children, and sends everybody's bytes as often.)
//
// Besides its parent a rank has a guardian, the parent's parent: when the parent dies or stands
// still, what there is to say still goes round.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_TREE_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_TREE_H_

#include <optional>
#include <vector>

namespace railhead::bootstrap {

inline constexpr int kArity = 4;

std::optional<int> Parent(int rank);
std::optional<int> Guardian(int rank);
std::vector<int> Children(int rank, int world_size);
// Those whose guardian this rank is.
std::vector<int> Grandchildren(int rank, int world_size);

// The rank and all below it: each before its children, these in their order.
std::vector<int> Subtree(int rank, int world_size);

// Whether the one is on the other's way to the root.
bool IsAbove(int one, int other);
// How many steps it is from a rank to the root, and to the furthest rank below it.
int Depth(int rank);
int Height(int rank, int world_size);

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_TREE_H_
