// SPDX-License-Identifier: Apache-2.0
//
// How good an answer is, counted from the answer alone: nothing here knows how it was found.
#ifndef RAILHEAD_PLACEMENT_SCORE_H_
#define RAILHEAD_PLACEMENT_SCORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/request.h"

namespace railhead::placement {

// How often borders between domains lie inside of the groups of one kind of parallelism.
struct GroupCuts {
  std::string name;               // the parallelism's, such as "tp"
  std::vector<int64_t> cuts;      // by borders of each level
  std::vector<int64_t> at_least;  // no answer has fewer, since a domain has only so much room

  bool operator==(const GroupCuts&) const = default;
};

struct Score {
  std::vector<int> domains;         // used, of each level, outermost first
  std::vector<int> ring_crossings;  // neighbours in the ring of ranks in different domains
  // Pairs of ranks between which the request's pattern sends, in different domains of each level.
  std::vector<int64_t> pattern_crossings;
  int rail_mismatches =
      0;  // neighbours in the ring on different nodes that are given different rails
  std::vector<GroupCuts> groups;  // of each parallelism but the outermost, whose group is the gang

  bool operator==(const Score&) const = default;
};

// `node_of_rank` are indices of the model's nodes.
Score ScoreOf(const fabric::FabricModel& model, const PlacementRequest& request,
              const std::vector<int>& node_of_rank);

}  // namespace railhead::placement

#endif  // RAILHEAD_PLACEMENT_SCORE_H_
