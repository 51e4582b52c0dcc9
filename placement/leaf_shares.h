// SPDX-License-Identifier: Apache-2.0
//
// Distribution of a gang's pods over the chosen leaves. Pure.
#ifndef RAILHEAD_PLACEMENT_LEAF_SHARES_H_
#define RAILHEAD_PLACEMENT_LEAF_SHARES_H_

#include <cstdint>
#include <vector>

namespace railhead::placement {

struct ChosenLeaf {
  int room = 0;
  // The outermost level at which this leaf and the next belong to different domains. Unused for the
  // last leaf.
  int border = 0;
};

// Returns the number of pods for each leaf: at least 1, at most its room, `pods` in total.
//
// The leaves together have more room than `pods`; the surplus is smaller than the room of any leaf,
// and any leaf may keep part of it. It is distributed so that borders between leaves fall between
// groups of ranks, not inside them. `groups`: sizes of groups that are contiguous in the order of
// GPUs, smallest first; each is a multiple of the previous one. Cuts of the smallest group are
// compared first; for one group, cuts at the outermost level are. The result is optimal for these
// leaves in this order. If several are, the surplus is in later leaves.
std::vector<int> ShareOut(const std::vector<ChosenLeaf>& leaves, int levels, int pods,
                          int gpus_per_pod, const std::vector<int64_t>& groups);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_LEAF_SHARES_H_
