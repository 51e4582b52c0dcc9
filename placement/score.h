// SPDX-License-Identifier: Apache-2.0
//
// Quality of a placement, computed from the result alone, independently of the solver. Pure.
#ifndef RAILHEAD_PLACEMENT_SCORE_H_
#define RAILHEAD_PLACEMENT_SCORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/request.h"

namespace railhead::placement {

// Number of domain borders inside groups of one kind of parallelism.
struct GroupCuts {
  std::string name;               // name of the parallelism, such as "tp"
  std::vector<int64_t> cuts;      // by level of the border
  std::vector<int64_t> at_least;  // lower bound for any placement, from the room of the domains

  bool operator==(const GroupCuts&) const = default;
};

struct Score {
  std::vector<int> domains;         // used domains by level, outermost first
  std::vector<int> ring_crossings;  // neighbours in the ring of ranks in different domains
  // Pairs of ranks that the pattern connects, in different domains, by level.
  std::vector<int64_t> pattern_crossings;
  // Neighbours in the ring of ranks that get different rails, on different nodes or on one.
  int rail_mismatches = 0;
  std::vector<GroupCuts> groups;  // of each parallelism except the outermost

  bool operator==(const Score&) const = default;
};

// `node_of_rank`: indices of the model's nodes.
Score ScoreOf(const fabric::FabricModel& model, const PlacementRequest& request,
              const std::vector<int>& node_of_rank);

// Returns the rails that each rank gets, as bits, if the pods of a node start in the order of
// ranks.
std::vector<uint64_t> RailsOfRanks(const fabric::FabricModel& model,
                                   const PlacementRequest& request,
                                   const std::vector<int>& node_of_rank);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_SCORE_H_
