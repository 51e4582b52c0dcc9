// SPDX-License-Identifier: Apache-2.0
#include "fabric/model/fabric_model.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

std::string TopologyName(FabricTopology topology) {
  switch (topology) {
    case FabricTopology::kFatTree:
      return "fat-tree";
    case FabricTopology::kRailOptimized:
      return "rail-optimized";
    case FabricTopology::kDragonfly:
      break;
  }
  return "dragonfly";
}

std::optional<int> LevelIndex(const FabricModel& model, absl::string_view level) {
  const auto it = std::find(model.levels.begin(), model.levels.end(), level);
  if (it == model.levels.end()) return std::nullopt;
  return static_cast<int>(it - model.levels.begin());
}

std::vector<std::vector<int>> DomainsOfNodes(const FabricModel& model) {
  std::vector<std::vector<int>> found(model.levels.size(),
                                      std::vector<int>(model.nodes.size(), -1));
  if (found.empty()) return found;
  const std::vector<FabricDomain>& leaves = model.domains.back();
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    for (int node = leaves[leaf].first; node < leaves[leaf].first + leaves[leaf].count; ++node) {
      int domain = static_cast<int>(leaf);
      for (size_t level = found.size(); level-- > 0;) {
        found[level][static_cast<size_t>(node)] = domain;
        domain = model.domains[level][static_cast<size_t>(domain)].parent;
      }
    }
  }
  return found;
}

}  // namespace railhead::fabric
