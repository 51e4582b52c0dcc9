// SPDX-License-Identifier: Apache-2.0
//
// Exact choice of leaves in a tree of domains. Used by Solve. Pure.
#ifndef RAILHEAD_PLACEMENT_LEAF_CHOICE_H_
#define RAILHEAD_PLACEMENT_LEAF_CHOICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/model/fabric_model.h"

namespace railhead::placement {

// Domains of each level, outermost first, as in FabricModel.
using Tree = std::vector<std::vector<fabric::FabricDomain>>;

// Capacity and cost of a domain of the innermost level.
struct LeafOffer {
  int room = 0;      // pods; 0 if it cannot be used
  int64_t cost = 0;  // fixed cost of using the leaf; may be negative
};

// Returns the best set of leaves with room for `pods` (at least 1), as ascending indices of
// innermost domains; nullopt if there is not enough room. At each of the `single_levels` outermost
// levels, the set uses one domain only. Sets are compared by, in this order:
//   1. fewest domains of the outermost level, then of each next level inwards;
//   2. least sum of costs;
//   3. least room;
//   4. at the first leaf in which two sets differ, the set that uses it is better. Domains of a
//      level are visited by ascending room, so that whole domains stay whole. Leaves of one domain
//      and domains with equal room are visited in the order of the file.
//
// This is a knapsack problem: a leaf is used whole or not at all. The algorithm computes the
// cheapest way to reach each exact amount of room, for growing parts of the tree. One number
// encodes a cost in all criteria above. Amounts above `pods` plus one leaf need no check, since a
// set that can drop a leaf is not the best. Time: about (room of all leaves) x (pods + room of one
// leaf) / 2 additions, at most the square of the room of all leaves. Memory: a few times the room
// of all leaves.
//
// Returns ResourceExhausted if that exceeds 2e10 additions (131072 pods in as many places take
// 9e9), or if the encoded cost exceeds 61 bits, which takes more levels and domains than real
// fabrics have.
absl::StatusOr<std::optional<std::vector<int>>> ChooseLeaves(const Tree& tree,
                                                             const std::vector<LeafOffer>& offers,
                                                             int pods, int single_levels);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_LEAF_CHOICE_H_
