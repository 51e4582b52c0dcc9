// SPDX-License-Identifier: Apache-2.0
//
// Communication tree: rank 0 is the root; the children of rank r are 4r+1 to 4r+4.
//
// With four children no rank has more than a few connections and messages, whatever the world size,
// and paths are short: 4 steps to the root for 256 ranks, 6 for 4,096. (With two children paths are
// twice as long; in a binomial tree the root has log n children, and sends everything as often.)
//
// A rank is connected to its parent and to its grandparent: if the parent dies or hangs, messages
// still get through.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_TREE_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_TREE_H_

#include <optional>
#include <vector>

namespace railhead::bootstrap {

inline constexpr int kArity = 4;

std::optional<int> Parent(int rank);
std::optional<int> Guardian(int rank);
std::vector<int> Children(int rank, int world_size);
// Ranks whose grandparent this rank is.
std::vector<int> Grandchildren(int rank, int world_size);

// Returns the rank and all below it, parents before children, in preorder.
std::vector<int> Subtree(int rank, int world_size);

// Returns true if `one` is on the path from `other` to the root.
bool IsAbove(int one, int other);
// Return the steps from a rank to the root, and to its deepest descendant.
int Depth(int rank);
int Height(int rank, int world_size);

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_TREE_H_
