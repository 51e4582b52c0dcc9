// SPDX-License-Identifier: Apache-2.0
//
// What is usual: the tightest domain that holds the gang, and in it the fullest leaves first.
#ifndef RAILHEAD_PLACEMENT_TESTING_BEST_FIT_H_
#define RAILHEAD_PLACEMENT_TESTING_BEST_FIT_H_

#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/request.h"

namespace railhead::placement::testing {

// A greedy answer to compare with: of the innermost level of which one domain has room for all, the
// domain with least room; inside, at each level, the domains with most room first, and for what
// is left at last the domain with least room that holds it. Knows nothing of rails and of
// requireLevel. The node of each rank; empty when there is no room.
std::vector<int> BestFit(const fabric::FabricModel& model, const PlacementRequest& request);

}  // namespace railhead::placement::testing

#endif  // RAILHEAD_PLACEMENT_TESTING_BEST_FIT_H_
