// SPDX-License-Identifier: Apache-2.0
//
// JSON output of placement requests, results and reasons: of `railhead plan`, `railhead why` and
// files of decisions.
#ifndef RAILHEAD_PLACEMENT_PLACEMENT_JSON_H_
#define RAILHEAD_PLACEMENT_PLACEMENT_JSON_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/reasons.h"
#include "placement/request.h"
#include "placement/solver.h"

namespace railhead::placement {

// Formats a request as ParsePlacementRequest reads it.
nlohmann::ordered_json ToJson(const PlacementRequest& request);

// Returns {"cause", "nodes", "message"}, {"change", "message"} or {"room", "nodes", "message"}.
nlohmann::ordered_json ToJson(const Reason& reason);

// Formats a result as `railhead plan -o json` prints it, without the time measurements:
//
//   {"placed": true,
//    "assignment": [{"rank": 0, "node": "n00000"}],
//    "score": {"domains": {"spine": 1, "leaf": 9}, "ringCrossings": {"spine": 0, "leaf": 9},
//              "patternCrossings": {"spine": 0, "leaf": 9}, "railMismatches": 0,
//              "groupCuts": {"tp": {"leaf": {"cuts": 1, "atLeast": 0}}},  # with parallelism
//              "preferLevelMet": false,    # if the request has a preferLevel
//              "optimal": true},           # null if not placed
//    "reasons": [{"cause": "GPUs in use", "nodes": 3, "message": "..."},
//                {"change": "pods", "message": "..."}]}
nlohmann::ordered_json ToJson(const fabric::FabricModel& model, const PlacementRequest& request,
                              const Placement& placement, const std::vector<Reason>& reasons);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_PLACEMENT_JSON_H_
