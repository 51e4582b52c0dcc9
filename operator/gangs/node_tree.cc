// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/node_tree.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/status/statusor.h"
#include "fabric/discovery/observations.h"
#include "fabric/natural_order.h"
#include "placement/topology/cluster_fabric.h"

namespace railhead::op::gangs {
namespace {

constexpr char kName[] = "cluster";
constexpr char kNowhere[] = "(no topology label)";  // no label's value has a bracket

// Returns a node that neither a source nor the given fabric places.
fabric::FabricNode NodeAlone(const fabric::SeenNode& seen) {
  fabric::FabricNode node;
  node.name = seen.name;
  node.gpus = seen.gpus;
  node.hcas = seen.hcas;
  if (!seen.rails || seen.rails->empty()) return node;
  node.hcas = static_cast<int>(seen.rails->size());
  for (const fabric::SeenRail& rail : *seen.rails) {
    if (!rail.usable) node.dead_rails.push_back(rail.rail);
  }
  return node;
}

}  // namespace

NodeTree BuildTree(const std::vector<NodeValue>& nodes,
                   const std::optional<fabric::FabricModel>& given) {
  std::map<std::string, NodeValue> by_name;
  std::vector<fabric::SeenNode> seen;
  for (const NodeValue& node : nodes) {
    if (by_name.emplace(node->name, node).second) seen.push_back(SeenNodeOf(*node));
  }
  NodeTree tree;
  absl::StatusOr<topology::ClusterFabric> fabric = topology::FindFabric(std::move(seen), given);
  if (fabric.ok()) {
    tree.model = std::move(fabric->found.model);
    for (fabric::FabricNode& node : tree.model.nodes) {
      node.used_gpus = 0;
      node.used_hcas = 0;
      node.used_rails.clear();
    }
  } else {
    tree.model.name = kName;
    tree.model.levels = {kName};
    tree.model.domains.resize(1);
    tree.model.rails = 1;
  }
  tree.placed = tree.model.nodes.size();
  for (const fabric::FabricNode& node : tree.model.nodes) {
    const auto known = by_name.find(node.name);
    tree.nodes.push_back(known->second);
    by_name.erase(known);
  }
  std::vector<NodeValue> left;
  left.reserve(by_name.size());
  for (const auto& [name, node] : by_name) left.push_back(node);
  std::sort(left.begin(), left.end(), [](const NodeValue& a, const NodeValue& b) {
    return fabric::NaturalLess(a->name, b->name);
  });
  if (left.empty()) return tree;
  for (size_t level = 0; level < tree.model.levels.size(); ++level) {
    fabric::FabricDomain domain;
    domain.name = kNowhere;
    domain.parent = level == 0 ? -1 : static_cast<int>(tree.model.domains[level - 1].size()) - 1;
    const bool innermost = level + 1 == tree.model.levels.size();
    domain.first = static_cast<int>(innermost ? tree.placed : tree.model.domains[level + 1].size());
    domain.count = innermost ? static_cast<int>(left.size()) : 1;
    tree.model.domains[level].push_back(std::move(domain));
  }
  for (const NodeValue& node : left) {
    tree.model.nodes.push_back(NodeAlone(SeenNodeOf(*node)));
    tree.nodes.push_back(node);
  }
  return tree;
}

std::optional<std::vector<size_t>> ReplaceNodes(const std::vector<NodeValue>& nodes,
                                                NodeTree& tree) {
  std::unordered_map<std::string_view, const NodeValue*> by_name;
  for (const NodeValue& node : nodes) by_name.emplace(node->name, &node);
  if (by_name.size() != tree.nodes.size()) return std::nullopt;
  std::vector<std::pair<size_t, const NodeValue*>> changed;
  for (size_t i = 0; i < tree.nodes.size(); ++i) {
    const StoredNode& before = *tree.nodes[i];
    const auto now = by_name.find(before.name);
    if (now == by_name.end()) return std::nullopt;
    const StoredNode& after = **now->second;
    if (&after == &before) continue;
    if (SeenNodeOf(after) != SeenNodeOf(before) || after.hostname != before.hostname) {
      return std::nullopt;
    }
    changed.emplace_back(i, now->second);
  }
  std::vector<size_t> indices;
  for (const auto& [i, node] : changed) {
    tree.nodes[i] = *node;
    indices.push_back(i);
  }
  return indices;
}

}  // namespace railhead::op::gangs
