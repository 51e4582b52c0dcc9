// SPDX-License-Identifier: Apache-2.0
//
// A cluster's fabric as values: which nodes hang where, and what is free on them.
#ifndef RAILHEAD_FABRIC_MODEL_FABRIC_MODEL_H_
#define RAILHEAD_FABRIC_MODEL_FABRIC_MODEL_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

enum class FabricTopology { kFatTree, kRailOptimized, kDragonfly };

// "fat-tree", "rail-optimized", "dragonfly".
std::string TopologyName(FabricTopology topology);

struct FabricNode {
  std::string name;  // unique in the fabric
  int gpus = 0;
  int hcas = 0;  // at most one on each rail, dead ones among them
  int used_gpus = 0;
  int used_hcas = 0;
  std::vector<int> dead_rails;  // ascending, without repetition
  std::string unschedulable;    // why no pod may be put there; empty: pods may
  // Which rails are in use, where that is known; ascending, without repetition. Dead ones may be
  // among them, and more HCAs may be in use than these.
  std::vector<int> used_rails = {};

  bool operator==(const FabricNode&) const = default;
};

// A domain of one level: a spine's, a leaf's, a group's or a router's nodes.
struct FabricDomain {
  std::string name;  // unique in its level, and not that of a domain around it
  int parent = -1;   // index in the level outwards; -1 at the outermost
  // What it holds: of the next level inwards, and of the innermost level the nodes.
  int first = 0;
  int count = 0;

  bool operator==(const FabricDomain&) const = default;
};

// A cable between two groups of a dragonfly, in Gbit/s in one direction.
struct GlobalLink {
  std::string a;
  std::string b;
  double gbps = 0;

  bool operator==(const GlobalLink&) const = default;
};

// Everything is in the order of the file, so what a domain holds stands side by side: domain d of
// level i has domains[i + 1][d.first] to [d.first + d.count - 1], one of the innermost level nodes.
struct FabricModel {
  std::string name;
  FabricTopology topology = FabricTopology::kFatTree;
  std::vector<std::string> levels;                 // outermost first, at least one
  int rails = 0;                                   // of a node, 1 to 64
  std::vector<std::vector<FabricDomain>> domains;  // [level]
  std::vector<FabricNode> nodes;
  std::map<std::string, double> link_gbps;  // Gbit/s in one direction of the uplink of a "node",
                                            // or of a domain of this level
  std::vector<GlobalLink> global_links;     // dragonfly only

  bool operator==(const FabricModel&) const = default;
};

// The index of a level's name, outermost 0.
std::optional<int> LevelIndex(const FabricModel& model, absl::string_view level);

// For each node its domain's index at each level: [level][node].
std::vector<std::vector<int>> DomainsOfNodes(const FabricModel& model);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_MODEL_FABRIC_MODEL_H_
