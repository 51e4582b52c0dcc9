// SPDX-License-Identifier: Apache-2.0
//
// How many pods each of the chosen leaves takes.
#ifndef RAILHEAD_PLACEMENT_LEAF_SHARES_H_
#define RAILHEAD_PLACEMENT_LEAF_SHARES_H_

#include <cstdint>
#include <vector>

namespace railhead::placement {

struct ChosenLeaf {
  int room = 0;
  // The outermost level of which the leaf after it is in another domain; of no meaning for the
  // last.
  int border = 0;
};

// One share for each leaf, at least 1 and at most its room, `pods` in all. Leaves have more room
// than that together, by less than each of them has; where it is left is free to choose. It is left
// so that the borders between leaves fall between groups of ranks and not inside: `groups` are the
// sizes of groups that are contiguous in the order of GPUs, smallest first, each a multiple of the
// one before. Cuts of the smallest group count first, and of a group those at the outermost level.
// The answer is the best there is for these leaves in this order; of equal ones, what is left is in
// later leaves.
std::vector<int> ShareOut(const std::vector<ChosenLeaf>& leaves, int levels, int pods,
                          int gpus_per_pod, const std::vector<int64_t>& groups);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_LEAF_SHARES_H_
