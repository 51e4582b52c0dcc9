// SPDX-License-Identifier: Apache-2.0
//
// Explanation of a failed placement: obstacles, and changes that would make the gang fit. Pure.
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
    kExcluded,  // `nodes` nodes accept no pod because of `what`
    kRoom,      // the room that is left, and where most of it is
    kChange,    // with this change the gang fits
  };
  Kind kind = Kind::kRoom;
  std::string what;  // kExcluded: the cause; kChange: "nodes", "pods", "requireLevel", "sameRails"
  int nodes = 0;     // number of nodes concerned
  std::string message;  // full text for users

  bool operator==(const Reason&) const = default;
};

// Returns the number of nodes that accept no pod of the gang, by cause, largest first.
std::vector<Reason> Exclusions(const fabric::FabricModel& model, const PlacementRequest& request);

// Explains why a gang does not fit (see solver.h): exclusions, remaining room, then changes that
// would make it fit. Each change is the smallest of its kind and verified with Fits: the fewest
// nodes to free and repair, fewer pods, a wider requireLevel, other rails. Returns InvalidArgument
// as Solve does.
absl::StatusOr<std::vector<Reason>> WhyNotPlaced(const fabric::FabricModel& model,
                                                 const PlacementRequest& request);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_REASONS_H_
