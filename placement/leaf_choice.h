// SPDX-License-Identifier: Apache-2.0
//
// Which leaves of a tree to use, exactly.
#ifndef RAILHEAD_PLACEMENT_LEAF_CHOICE_H_
#define RAILHEAD_PLACEMENT_LEAF_CHOICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/model/fabric_model.h"

namespace railhead::placement {

// The domains of each level, outermost first, as in FabricModel.
using Tree = std::vector<std::vector<fabric::FabricDomain>>;

// What a domain of the innermost level has to offer.
struct LeafOffer {
  int room = 0;      // pods; 0 when it cannot be used
  int64_t cost = 0;  // of using it at all; may be negative
};

// Indices of innermost domains, ascending. Of all sets of leaves with room for `pods` (1 or more),
// this one is first by: fewest domains of the outermost level, then of each level inwards; then the
// least sum of costs; then the least room; and then that set is first that uses the leaf where two
// sets differ first, if one goes through the domains of each level from those with the least room,
// so that what is whole stays whole, and through the leaves of one domain, and through domains with
// equal room, in the order of the file. Of each of the `single_levels` outermost levels only one
// domain may be used. Nothing when there is no room.
//
// It is a knapsack: a leaf is taken whole or not, and the cheapest way to an exact amount of room
// is computed for ever larger parts of the tree, where a cost is all of the order above in one
// number. No more room than `pods` and one leaf is ever looked at, since a set that could miss a
// leaf is not the first. Time is about (room of all leaves) x (pods + room of one leaf) / 2
// additions, and never more than the square of the former; memory a few times the room of all
// leaves.
//
// ResourceExhausted when that would be more than 2e10 additions (131072 places for as many pods are
// 9e9), or when the number does not fit into 61 bits, with more levels and domains than fabrics
// have.
absl::StatusOr<std::optional<std::vector<int>>> ChooseLeaves(const Tree& tree,
                                                             const std::vector<LeafOffer>& offers,
                                                             int pods, int single_levels);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_LEAF_CHOICE_H_
