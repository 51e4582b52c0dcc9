// SPDX-License-Identifier: Apache-2.0
//
// Why a gang has no place, and what would give it one.
#ifndef RAILHEAD_PLACEMENT_REASONS_H_
#define RAILHEAD_PLACEMENT_REASONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/model/fabric_model.h"
#include "placement/request.h"

namespace railhead::placement {

struct Reason {
  enum class Kind {
    kExcluded,  // `nodes` nodes take no pod because of `what`
    kRoom,      // how much room there is, and where most of it
    kChange,    // if this is changed, the gang fits
  };
  Kind kind = Kind::kRoom;
  std::string what;  // kExcluded: the cause; kChange: "nodes", "pods", "requireLevel", "sameRails"
  int nodes = 0;     // how many nodes it is about
  std::string message;  // all of it, for people

  bool operator==(const Reason&) const = default;
};

// How many nodes take no pod of the gang, for each cause; most first.
std::vector<Reason> Exclusions(const fabric::FabricModel& model, const PlacementRequest& request);

// For a gang that does not fit (solver.h): the exclusions, how much room is left, and then what
// would make the gang fit, each the smallest of its kind and proven by Fits: the fewest nodes to be
// freed and mended, a gang of fewer pods, a wider requireLevel, and other rails. InvalidArgument as
// Solve.
absl::StatusOr<std::vector<Reason>> WhyNotPlaced(const fabric::FabricModel& model,
                                                 const PlacementRequest& request);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_REASONS_H_
