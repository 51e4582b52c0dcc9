// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/score.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "operator/placement/node_room.h"
#include "operator/placement/request.h"

namespace railhead::placement {
namespace {

int RingCrossings(const std::vector<int>& domain_of_rank) {
  int crossings = 0;
  for (size_t rank = 0; rank < domain_of_rank.size(); ++rank) {
    const size_t next = (rank + 1) % domain_of_rank.size();
    crossings += domain_of_rank[rank] != domain_of_rank[next] ? 1 : 0;
  }
  return crossings;
}

int64_t TreeCrossings(const std::vector<int>& domain_of_rank) {
  int64_t crossings = 0;
  for (size_t rank = 1; rank < domain_of_rank.size(); ++rank) {
    crossings += domain_of_rank[rank] != domain_of_rank[(rank - 1) / 2] ? 1 : 0;
  }
  return crossings;
}

// Pairs in all, less those inside of each domain.
int64_t AllToAllCrossings(int64_t ranks, const std::map<int, int64_t>& ranks_of_domain) {
  int64_t pairs = ranks * (ranks - 1) / 2;
  for (const auto& [domain, inside] : ranks_of_domain) pairs -= inside * (inside - 1) / 2;
  return pairs;
}

}  // namespace

Score ScoreOf(const fabric::FabricModel& model, const PlacementRequest& request,
              const std::vector<int>& node_of_rank) {
  Score score;
  for (const std::vector<int>& domain_of_node : fabric::DomainsOfNodes(model)) {
    std::vector<int> domains;
    std::map<int, int64_t> ranks_of_domain;
    for (const int node : node_of_rank) {
      domains.push_back(domain_of_node[static_cast<size_t>(node)]);
      ++ranks_of_domain[domains.back()];
    }
    const int ring = RingCrossings(domains);
    score.domains.push_back(static_cast<int>(ranks_of_domain.size()));
    score.ring_crossings.push_back(ring);
    switch (request.pattern) {
      case Pattern::kRing:
        score.pattern_crossings.push_back(ring);
        break;
      case Pattern::kTree:
        score.pattern_crossings.push_back(TreeCrossings(domains));
        break;
      case Pattern::kAllToAll:
        score.pattern_crossings.push_back(
            AllToAllCrossings(static_cast<int64_t>(domains.size()), ranks_of_domain));
        break;
    }
  }
  for (size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const int node = node_of_rank[rank];
    const int next = node_of_rank[(rank + 1) % node_of_rank.size()];
    if (node == next) continue;
    const auto rails = [&](int of) {
      return RailsOnNode(model.nodes[static_cast<size_t>(of)], request.hcas_per_pod);
    };
    score.rail_mismatches += rails(node) != rails(next) ? 1 : 0;
  }
  return score;
}

}  // namespace railhead::placement
