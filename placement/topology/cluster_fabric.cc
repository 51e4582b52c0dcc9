// SPDX-License-Identifier: Apache-2.0
#include "placement/topology/cluster_fabric.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/finding.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/listed.h"
#include "fabric/discovery/observations.h"

namespace railhead::topology {
namespace {

using fabric::DiscoveredFabric;
using fabric::FabricModel;
using fabric::FabricNode;
using fabric::RailWire;
using fabric::SeenNode;
using fabric::SeenRail;

constexpr char kName[] = "cluster";

// Replaces values of the model by those of the node's agent and kubelet.
void TellOfItself(const SeenNode& seen, int rails, FabricNode& node, std::vector<RailWire>& wires) {
  if (seen.gpus > 0 || seen.offers_gpus) node.gpus = seen.gpus;
  node.used_gpus = std::min(node.used_gpus, node.gpus);
  // Also if there is no reason now: the model may have been printed while there was one.
  node.unschedulable = seen.unschedulable;
  if (seen.rails.has_value()) {
    node.dead_rails.clear();
    node.hcas = 0;
    for (const SeenRail& rail : *seen.rails) {
      if (rail.rail >= rails) continue;
      ++node.hcas;
      if (!rail.usable) node.dead_rails.push_back(rail.rail);
      wires.push_back({rail.rail, rail.device, "", "", rail.gbps, !rail.usable, false});
    }
    return;
  }
  wires = fabric::WiresOf(node, rails);
}

// Returns the model without nodes that the cluster lacks; domains stay, even if empty.
ClusterFabric Given(const FabricModel& model, const std::map<std::string, const SeenNode*>& seen) {
  ClusterFabric fabric;
  fabric.given = true;
  FabricModel& found = fabric.found.model;
  found = model;
  found.name = kName;
  found.nodes.clear();
  std::vector<std::string> absent;
  std::vector<std::string> more_rails;
  for (fabric::FabricDomain& leaf : found.domains.back()) {
    const int first = leaf.first;
    const int count = leaf.count;
    leaf.first = static_cast<int>(found.nodes.size());
    for (int i = first; i < first + count; ++i) {
      FabricNode node = model.nodes[static_cast<size_t>(i)];
      const auto known = seen.find(node.name);
      if (known == seen.end()) {
        absent.push_back(node.name);
        continue;
      }
      const std::optional<SharedList<SeenRail>>& rails = known->second->rails;
      if (rails.has_value() && !rails->empty() && rails->back().rail >= model.rails) {
        more_rails.push_back(node.name);
      }
      TellOfItself(*known->second, model.rails, node, fabric.found.wires.emplace_back());
      found.nodes.push_back(std::move(node));
    }
    leaf.count = static_cast<int>(found.nodes.size()) - leaf.first;
  }
  std::map<std::string, bool> in_model;
  for (const FabricNode& node : model.nodes) in_model[node.name] = true;
  std::vector<std::string> unknown;
  for (const auto& [name, node] : seen) {
    if (InFabric(*node) && in_model.count(name) == 0) unknown.push_back(name);
  }
  const auto tell = [&fabric](Severity severity, const char* check,
                              const std::vector<std::string>& names, const char* what,
                              const char* fix) {
    if (names.empty()) return;
    fabric.found.findings.push_back({severity, check, fabric::Listed(names), what, fix});
  };
  tell(Severity::kFail, fabric::kContradiction, more_rails,
       "more rails than spec.model.rails, according to the node agent; the excess is ignored",
       "correct spec.model.rails");
  tell(Severity::kFail, fabric::kNoPlace, unknown, "not in spec.model, so without a place",
       "add them there, or remove spec.model to discover the fabric");
  tell(Severity::kNote, fabric::kNoPlace, absent,
       "in spec.model, but the cluster has no such nodes",
       "nothing to do if they will join; else remove them from spec.model");
  return fabric;
}

}  // namespace

bool InFabric(const SeenNode& node) {
  return node.gpus > 0 || node.hcas > 0 || node.rails.has_value();
}

absl::StatusOr<ClusterFabric> FindFabric(std::vector<SeenNode> nodes,
                                         const std::optional<FabricModel>& given) {
  if (given.has_value()) {
    std::map<std::string, const SeenNode*> seen;
    for (const SeenNode& node : nodes) seen[node.name] = &node;
    ClusterFabric fabric = Given(*given, seen);
    if (fabric.found.model.nodes.empty()) {
      return absl::FailedPreconditionError(
          "spec.model contains no node of the cluster: correct its node names");
    }
    return fabric;
  }
  fabric::Observations seen;
  seen.nodes = std::move(nodes);
  std::erase_if(seen.nodes,
                [](const SeenNode& node) { return !InFabric(node) && node.facts_fault.empty(); });
  absl::StatusOr<DiscoveredFabric> found = fabric::FuseObservations(seen, kName);
  if (!found.ok()) {
    return absl::FailedPreconditionError(
        "no node has labels of its place: write spec.model (railhead topology -o yaml), or let "
        "topograph or the cloud label the nodes");
  }
  return ClusterFabric{false, *std::move(found)};
}

}  // namespace railhead::topology
