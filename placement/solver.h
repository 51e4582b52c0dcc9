// SPDX-License-Identifier: Apache-2.0
//
// Where the pods of a gang go. Pure: no I/O, no clock, no state; the same question always has the
// same answer.
#ifndef RAILHEAD_PLACEMENT_SOLVER_H_
#define RAILHEAD_PLACEMENT_SOLVER_H_

#include <cstddef>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/model/fabric_model.h"
#include "placement/request.h"
#include "placement/score.h"

namespace railhead::placement {

struct Placement {
  bool placed = false;            // if not, all else is empty, and WhyNotPlaced says more
  std::vector<int> node_of_rank;  // indices of the model's nodes
  Score score;                    // of what is placed
  bool optimal = false;           // proven to be first in the order below

  bool operator==(const Placement&) const = default;
};

// The answer that is first by, in this order:
//   1. fewest domains of the outermost level, then of each next level inwards;
//   2. fewest pods off the rails that most of its pods are given (none, if that can be had with the
//      same numbers of domains: then no two ring neighbours have different rails). With sameRails
//      none whatever it costs, or it is not placed;
//   3. the least room left in the leaves that it uses;
//   4. in a dragonfly with global links, where several groups are needed: groups that are better
//      linked (see BetterLinkedGroups, which also says how many sets of groups it looks at);
//   5. outer domains with less room, so that those with most stay whole, and then the order of the
//      file (see ChooseLeaves);
//   6. of the ways to leave that room in the leaves, the fewest cuts of parallelism groups (see
//      ShareOut). Whether other leaves would cut fewer is not looked at, but bounded: `optimal` is
//      true where the cuts are as few as any answer has, and Score says how few that is.
// In a leaf that is not used up, as few nodes as possible, and of those the ones that fit tightest.
// Ranks are contiguous in each domain, in the order of the file, but for nodes that are given other
// rails than most, which come last in their leaf.
//
// InvalidArgument for a request without pods, or whose pods ask for nothing, or for a level that
// the model does not have, or whose parallelism is not of the gang's size; ResourceExhausted as in
// ChooseLeaves.
absl::StatusOr<Placement> Solve(const fabric::FabricModel& model, const PlacementRequest& request);

// Whether Solve would place it, where it does not give up: without weighing one way against
// another, so in a time that grows with the number of nodes alone; with these nodes in the place of
// the model's, by their index. InvalidArgument as Solve.
absl::StatusOr<bool> Fits(const fabric::FabricModel& model, const PlacementRequest& request,
                          const std::map<size_t, fabric::FabricNode>& instead = {});

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_SOLVER_H_
