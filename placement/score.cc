// SPDX-License-Identifier: Apache-2.0
#include "placement/score.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "fabric/model/fabric_model.h"
#include "placement/node_room.h"
#include "placement/request.h"

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

// Returns the number of all pairs minus those inside each domain.
int64_t AllToAllCrossings(int64_t ranks, const std::map<int, int64_t>& ranks_of_domain) {
  int64_t pairs = ranks * (ranks - 1) / 2;
  for (const auto& [domain, inside] : ranks_of_domain) pairs -= inside * (inside - 1) / 2;
  return pairs;
}

// Returns the maximum number of pods that one domain of each level has room for.
std::vector<int64_t> MostRoom(const fabric::FabricModel& model, const PlacementRequest& request,
                              const std::vector<std::vector<int>>& domains_of_nodes) {
  std::vector<int64_t> most;
  for (size_t level = 0; level < domains_of_nodes.size(); ++level) {
    std::vector<int64_t> room(model.domains[level].size());
    for (size_t node = 0; node < model.nodes.size(); ++node) {
      room[static_cast<size_t>(domains_of_nodes[level][node])] +=
          RoomOnNode(model.nodes[node], request).pods;
    }
    most.push_back(*std::max_element(room.begin(), room.end()));
  }
  return most;
}

std::vector<GroupCuts> CutsOf(const fabric::FabricModel& model, const PlacementRequest& request,
                              const std::vector<int>& node_of_rank,
                              const std::vector<std::vector<int>>& domains_of_nodes) {
  const std::vector<int64_t> sizes = GroupSizes(request);
  if (sizes.empty()) return {};
  const std::vector<int64_t> most = MostRoom(model, request, domains_of_nodes);
  const int64_t gpus = request.gpus_per_pod;
  const int64_t all_gpus = gpus * request.pods;
  std::vector<GroupCuts> groups;
  for (size_t i = 0; i < sizes.size(); ++i) {
    GroupCuts group;
    group.name = request.parallelism[i].first;
    for (size_t level = 0; level < most.size(); ++level) {
      int64_t cuts = 0;
      for (size_t rank = 1; rank < node_of_rank.size(); ++rank) {
        const int here = domains_of_nodes[level][static_cast<size_t>(node_of_rank[rank])];
        const int before = domains_of_nodes[level][static_cast<size_t>(node_of_rank[rank - 1])];
        if (here != before && static_cast<int64_t>(rank) * gpus % sizes[i] != 0) ++cuts;
      }
      group.cuts.push_back(cuts);
      // Minimum number of domains for a group of this size.
      const int64_t domains = (sizes[i] + gpus * most[level] - 1) / (gpus * most[level]);
      group.at_least.push_back((domains - 1) * (all_gpus / sizes[i]));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

Score ScoreOf(const fabric::FabricModel& model, const PlacementRequest& request,
              const std::vector<int>& node_of_rank) {
  Score score;
  const std::vector<std::vector<int>> domains_of_nodes = fabric::DomainsOfNodes(model);
  score.groups = CutsOf(model, request, node_of_rank, domains_of_nodes);
  for (const std::vector<int>& domain_of_node : domains_of_nodes) {
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
  const std::vector<uint64_t> rails = RailsOfRanks(model, request, node_of_rank);
  for (size_t rank = 0; rank < rails.size(); ++rank) {
    score.rail_mismatches += rails[rank] != rails[(rank + 1) % rails.size()] ? 1 : 0;
  }
  return score;
}

std::vector<uint64_t> RailsOfRanks(const fabric::FabricModel& model,
                                   const PlacementRequest& request,
                                   const std::vector<int>& node_of_rank) {
  std::vector<int> pods_of_node(model.nodes.size(), 0);
  std::vector<uint64_t> rails;
  rails.reserve(node_of_rank.size());
  for (const int rank_node : node_of_rank) {
    const auto node = static_cast<size_t>(rank_node);
    rails.push_back(RailsOnNode(model.nodes[node], request.hcas_per_pod, pods_of_node[node]++));
  }
  return rails;
}

}  // namespace railhead::placement
