// SPDX-License-Identifier: Apache-2.0
//
// The usual greedy algorithm, as reference: tightest domain that holds the gang, then the emptiest
// leaves.
#ifndef RAILHEAD_PLACEMENT_TESTING_BEST_FIT_H_
#define RAILHEAD_PLACEMENT_TESTING_BEST_FIT_H_

#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/request.h"

namespace railhead::placement::testing {

// Returns the node of each rank by a greedy algorithm; empty if there is not enough room. At the
// innermost level that has a domain with room for all pods, takes the domain with least room.
// Inside, takes domains with most room first at each level, and for the rest the domain with least
// room that holds it. Ignores rails and requireLevel.
std::vector<int> BestFit(const fabric::FabricModel& model, const PlacementRequest& request);

}  // namespace railhead::placement::testing

#endif  // RAILHEAD_PLACEMENT_TESTING_BEST_FIT_H_
