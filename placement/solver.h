// SPDX-License-Identifier: Apache-2.0
//
// Placement solver: assigns the pods of a gang to nodes. Pure: no I/O, no clock, no state; equal
// input gives equal output.
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
  bool placed = false;            // if false, all else is empty; see WhyNotPlaced
  std::vector<int> node_of_rank;  // indices of the model's nodes
  Score score;                    // of the assignment
  bool optimal = false;           // proven best in the order below

  bool operator==(const Placement&) const = default;
};

// Returns the best placement, compared by, in this order:
//   1. fewest domains of the outermost level, then of each next level inwards;
//   2. all pods on the same rails, if the same numbers of domains allow it. Two pods of a node get
//      the same rails only if they share HCAs (see RailsOnNode), so this takes a node for each pod
//      otherwise. With sameRails it must be so, whatever it costs, else the gang is not placed;
//   3. fewest pods on nodes whose first pod gets other rails than that of most pods' nodes;
//   4. least room left in the used leaves;
//   5. in a dragonfly with global links, if the gang needs several groups: better linked groups
//      (see BetterLinkedGroups, also for the number of sets it compares);
//   6. outer domains with less room (on these rails, if all pods get the same ones), so that the
//      emptiest stay whole; then the order of the file (see ChooseLeaves);
//   7. fewest cuts of parallelism groups, by distribution of the room left in the leaves (see
//      ShareOut). Other leaves might give fewer cuts; they are not searched, but bounded: `optimal`
//      is true if no placement has fewer cuts, and Score contains the bound.
// In a partially used leaf, the solver uses as few nodes as the criteria permit, and of those the
// tightest fit. Ranks are contiguous in each domain, in the order of the file. Nodes that give
// other rails than most come last in their leaf.
//
// Returns InvalidArgument if the request has no pods, its pods request nothing, the model lacks a
// level of the request, or the parallelism does not match the size of the gang. Returns
// ResourceExhausted as ChooseLeaves does.
absl::StatusOr<Placement> Solve(const fabric::FabricModel& model, const PlacementRequest& request);

// Returns whether Solve would place the gang, unless Solve fails with ResourceExhausted. Compares
// no alternatives, so time grows with the number of nodes only. `instead` replaces nodes of the
// model, by index. Returns InvalidArgument as Solve does.
absl::StatusOr<bool> Fits(const fabric::FabricModel& model, const PlacementRequest& request,
                          const std::map<size_t, fabric::FabricNode>& instead = {});

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_SOLVER_H_
