// SPDX-License-Identifier: Apache-2.0
//
// Model of a cluster's fabric: domains, nodes, and what is free on them. Plain values, used by the
// solver, the operator and the command line.
#ifndef RAILHEAD_FABRIC_MODEL_FABRIC_MODEL_H_
#define RAILHEAD_FABRIC_MODEL_FABRIC_MODEL_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

enum class FabricTopology { kFatTree, kRailOptimized, kDragonfly };

// Returns "fat-tree", "rail-optimized" or "dragonfly".
std::string TopologyName(FabricTopology topology);

struct FabricNode {
  std::string name;  // unique in the fabric
  int gpus = 0;
  int hcas = 0;  // at most one per rail, including dead ones
  int used_gpus = 0;
  int used_hcas = 0;
  std::vector<int> dead_rails;  // ascending, unique
  std::string unschedulable;    // why no pod can be placed there; empty: pods can
  // Rails in use, if known; ascending, unique. May include dead rails; more HCAs may be in use.
  std::vector<int> used_rails = {};
  // Several pods may hold one HCA. Set by the operator only, whose `hcas` then counts shares.
  bool shared_hcas = false;

  bool operator==(const FabricNode&) const = default;
};

// A domain of one level: the nodes of a spine, leaf, group or router.
struct FabricDomain {
  std::string name;  // unique in its level; differs from its ancestors' names
  int parent = -1;   // index in the next outer level; -1 at the outermost
  // Range of its children: domains of the next inner level, or nodes at the innermost.
  int first = 0;
  int count = 0;

  bool operator==(const FabricDomain&) const = default;
};

// A cable between two groups of a dragonfly, in Gbit/s per direction.
struct GlobalLink {
  std::string a;
  std::string b;
  double gbps = 0;

  bool operator==(const GlobalLink&) const = default;
};

// All vectors are in file order, so the children of a domain are adjacent: domain d of level i
// contains domains[i + 1][d.first] to [d.first + d.count - 1]; at the innermost level, nodes.
struct FabricModel {
  std::string name;
  FabricTopology topology = FabricTopology::kFatTree;
  std::vector<std::string> levels;                 // outermost first, at least one
  int rails = 0;                                   // per node, 1 to 64
  std::vector<std::vector<FabricDomain>> domains;  // [level]
  std::vector<FabricNode> nodes;
  // Gbit/s per direction of the uplink of a "node" or level
  std::map<std::string, double> link_gbps;
  std::vector<GlobalLink> global_links;  // dragonfly only

  bool operator==(const FabricModel&) const = default;
};

// Returns the index of a level's name; the outermost is 0.
std::optional<int> LevelIndex(const FabricModel& model, absl::string_view level);

// Returns the domain of each node at each level: [level][node].
std::vector<std::vector<int>> DomainsOfNodes(const FabricModel& model);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_MODEL_FABRIC_MODEL_H_
