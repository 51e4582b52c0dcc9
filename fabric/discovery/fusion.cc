// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/fusion.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/finding.h"
#include "fabric/discovery/cabled_places.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/label_places.h"
#include "fabric/discovery/listed.h"
#include "fabric/discovery/network.h"
#include "fabric/discovery/node_rails.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/offers.h"
#include "fabric/discovery/other_networks.h"
#include "fabric/discovery/place_labels.h"
#include "fabric/discovery/rail_names.h"
#include "fabric/model/fabric_model.h"
#include "fabric/natural_order.h"
#include "fabric/rail_limit.h"

namespace railhead::fabric {
namespace {

constexpr int kMostUsed = 1'000'000;  // of any resource on one node; higher counts are clamped

// Domains of a level are identified by their path from the outermost level.
using Path = std::vector<std::string>;

bool PathLess(const Path& a, const Path& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), NaturalLess);
}

// Returns the check's place in the order of findings.
ptrdiff_t OrderOf(absl::string_view check) {
  return std::find(std::begin(kChecks), std::end(kChecks), check) - std::begin(kChecks);
}

class Fusion {
 public:
  explicit Fusion(const Observations& seen) : seen_(seen) {
    for (const SeenUse& use : seen.uses) {
      SeenUse& all = uses_[use.node];
      all.gpus = std::min(kMostUsed, all.gpus + use.gpus);
      all.hcas = std::min(kMostUsed, all.hcas + use.hcas);
    }
  }

  absl::StatusOr<DiscoveredFabric> Run(absl::string_view name) {
    found_.model.name = std::string(name);
    Network network = BuildNetwork(seen_, found_.findings);
    LeaveOtherNetworksOut(seen_, network, found_.findings);
    nodes_ = FindRails(seen_, network, found_.findings);
    CompareRailNames(seen_, found_.findings);
    std::erase_if(nodes_, Bystander);
    const LabelPlaces labels = PlacesByLabels(seen_.nodes, found_.findings);
    CabledPlaces cabled = PlacesByCables(network, nodes_, found_.findings);
    if (cabled.levels.empty()) {
      found_.model.levels = labels.levels;
      for (const NodeRails& node : nodes_) {
        const auto place = labels.of_node.find(node.node);
        paths_.push_back(place == labels.of_node.end() ? Path() : place->second);
      }
    } else {
      CompareWithLabels(labels, cabled);
      found_.model.levels = cabled.levels;
      paths_ = std::move(cabled.paths);
      found_.model.topology =
          cabled.rail_optimized ? FabricTopology::kRailOptimized : FabricTopology::kFatTree;
    }
    found_.model.rails = std::max(1, Rails());
    const Offers offers(nodes_);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (paths_[i].empty() || !OfferedAlone(nodes_[i])) continue;
      const int hcas = offers.Hcas(nodes_[i].kubernetes->hcas).value_or(0);
      found_.model.rails = std::max(found_.model.rails, std::min(hcas, kHighestRail + 1));
    }
    Assemble(network, cabled, offers);
    if (found_.model.nodes.empty()) {
      return absl::FailedPreconditionError(
          "no source gives the position of any node; give cables (ibnetdiscover, lldpcli) or nodes "
          "with "
          "labels of their place (kubectl get nodes -o json)");
    }
    TellMissing();
    std::stable_sort(found_.findings.begin(), found_.findings.end(),
                     [](const Finding& a, const Finding& b) {
                       if (a.severity != b.severity) return a.severity > b.severity;
                       if (a.check != b.check) return OrderOf(a.check) < OrderOf(b.check);
                       return NaturalLess(a.object, b.object);
                     });
    return std::move(found_);
  }

 private:
  int Rails() const { return nodes_.empty() ? 0 : static_cast<int>(nodes_[0].rails.size()); }

  // Returns whether the node, such as one of the control plane, has neither rails nor GPUs.
  static bool Bystander(const NodeRails& node) {
    return OfferedAlone(node) && node.kubernetes->facts_fault.empty() &&
           node.kubernetes->gpus == 0 && node.kubernetes->hcas == 0;
  }

  // Labels place nodes without known cables; labels of other nodes are checked.
  void CompareWithLabels(const LabelPlaces& labels, CabledPlaces& cabled) {
    if (!TellsOfNetwork(labels.scheme)) return;
    std::map<Path, std::map<std::string, int>> values;  // innermost label values in a leaf
    std::map<std::string, std::set<Path>> leaves;       // and the leaves of a value
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto place = labels.of_node.find(nodes_[i].node);
      if (place == labels.of_node.end() || cabled.paths[i].empty()) continue;
      ++values[cabled.paths[i]][place->second.back()];
      leaves[place->second.back()].insert(cabled.paths[i]);
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto place = labels.of_node.find(nodes_[i].node);
      if (place == labels.of_node.end()) continue;
      const std::string& value = place->second.back();
      if (cabled.paths[i].empty()) {
        if (leaves[value].size() == 1) cabled.paths[i] = *leaves[value].begin();
        continue;
      }
      int all = 0;
      std::pair<std::string, int> most;
      for (const auto& [other, count] : values[cabled.paths[i]]) {
        all += count;
        if (count > most.second) most = {other, count};
      }
      // If no label value has a majority in a leaf, labels divide it further, which is not a
      // contradiction.
      if (value == most.first || most.second * 2 <= all) continue;
      found_.findings.push_back(
          {Severity::kFail, kContradiction, nodes_[i].node,
           absl::StrCat("in leaf ", cabled.paths[i].back(), " by its cables, but ", labels.scheme,
                        "'s labels say ", labels.levels.back(), " ", value,
                        " where those of its neighbours say ", most.first,
                        "; cables take precedence"),
           "correct the labels"});
    }
  }

  void Assemble(const Network& network, const CabledPlaces& cabled, const Offers& offers) {
    std::vector<size_t> order;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!paths_[i].empty()) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [this](size_t a, size_t b) { return PathLess(paths_[a], paths_[b]); });
    FabricModel& model = found_.model;
    model.domains.resize(model.levels.size());
    if (!cabled.levels.empty()) found_.switches.resize(model.levels.size());
    Path before;
    for (const size_t i : order) {
      const Path& path = paths_[i];
      bool changed = false;
      for (size_t level = 0; level < path.size(); ++level) {
        changed = changed || before.empty() || path[level] != before[level];
        if (!changed) continue;
        FabricDomain domain;
        domain.name = path[level];
        domain.parent = level == 0 ? -1 : static_cast<int>(model.domains[level - 1].size()) - 1;
        domain.first = static_cast<int>(level + 1 == path.size() ? model.nodes.size()
                                                                 : model.domains[level + 1].size());
        if (level > 0) ++model.domains[level - 1].back().count;
        model.domains[level].push_back(std::move(domain));
        if (!cabled.levels.empty()) {
          found_.switches[level].push_back(cabled.switches[level].at(path[level]));
          // Nodes without cables can have more rails than those with cables.
          if (level + 1 == path.size()) {
            found_.switches[level].back().resize(static_cast<size_t>(model.rails));
          }
        }
      }
      ++model.domains.back().back().count;
      before = path;
      AddNode(nodes_[i], network, offers);
    }
  }

  // Frees the node's rails, which become its wires: with tens of thousands of nodes they are large.
  void AddNode(NodeRails& node, const Network& network, const Offers& offers) {
    FabricNode out;
    out.name = node.node;
    std::vector<RailWire> wires;
    for (size_t r = 0; r < node.rails.size(); ++r) {
      const RailNic& rail = node.rails[r];
      if (!rail.there()) continue;
      const auto number = static_cast<int>(r);
      ++out.hcas;
      if (rail.dead) out.dead_rails.push_back(number);
      const bool cabled = rail.cable.at >= 0;
      wires.push_back(
          {number, rail.nic, cabled ? network.switches[static_cast<size_t>(rail.cable.at)] : "",
           rail.cable.port, rail.gbps > 0 ? rail.gbps : rail.cable.gbps, rail.dead, rail.miswired});
    }
    if (node.kubernetes != nullptr) {
      out.gpus = node.kubernetes->gpus;
      if (OfferedAlone(node)) {
        // For shared HCAs, each pod gets the number that it requests.
        out.hcas = std::min(offers.Hcas(node.kubernetes->hcas).value_or(found_.model.rails),
                            found_.model.rails);
        for (int rail = 0; rail < out.hcas; ++rail) wires.push_back({rail, "", "", "", 0});
      }
      out.unschedulable = node.kubernetes->unschedulable;
    }
    const auto use = uses_.find(node.node);
    if (use != uses_.end()) {
      out.used_gpus = std::min(use->second.gpus, out.gpus);
      out.used_hcas =
          UsedHcas(out, node.kubernetes == nullptr ? 0 : node.kubernetes->hcas, use->second.hcas);
    }
    found_.model.nodes.push_back(std::move(out));
    found_.wires.push_back(std::move(wires));
    std::vector<RailNic>().swap(node.rails);
  }

  // Reports nodes without facts and nodes without a place.
  void TellMissing() {
    std::vector<std::string> no_facts;
    std::vector<std::string> no_place;
    size_t with_facts = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const NodeRails& node = nodes_[i];
      const SeenNode* known = node.kubernetes;
      if (node.facts) ++with_facts;
      const bool unread = known != nullptr && !node.facts && !known->facts_fault.empty();
      if (unread) {
        found_.findings.push_back(
            {Severity::kFail, kNoFacts, node.node,
             absl::StrCat("the facts of its node agent (annotation railhead.io/node-facts) cannot "
                          "be read, and are ignored: ",
                          known->facts_fault),
             "check that agent and reader have the same release"});
      }
      if (paths_[i].empty() && (node.facts || (known != nullptr && known->gpus > 0))) {
        no_place.push_back(node.node);
      } else if (!paths_[i].empty() && known != nullptr && !node.facts && !unread) {
        no_facts.push_back(node.node);
      }
    }
    if (!no_place.empty()) {
      found_.findings.push_back(
          {Severity::kFail, kNoPlace, Listed(no_place),
           "neither a cable nor a label gives their place; ignored, so no job is placed there",
           "label them with topology.railhead.io/LEVEL, or add the LLDP neighbours or the "
           "InfiniBand subnet as a source"});
    }
    if (!no_facts.empty()) {
      found_.findings.push_back(
          {with_facts > 0 ? Severity::kFail : Severity::kNote, kNoFacts, Listed(no_facts),
           "no facts of a node agent (annotation railhead.io/node-facts), so rails are counted by "
           "the names of NICs and dead ones may be missed",
           "check that the agent runs there"});
    }
    if (seen_.nodes.empty()) {
      found_.findings.push_back({Severity::kNote, kNoFacts, "all nodes",
                                 "the number of GPUs is taken as 0, as Kubernetes is not a source",
                                 "add the output of `kubectl get nodes,pods -A -o json`"});
    }
  }

  const Observations& seen_;
  std::map<std::string, SeenUse> uses_;  // of each node
  std::vector<NodeRails> nodes_;
  std::vector<Path> paths_;  // of each node; empty: no place
  DiscoveredFabric found_;
};

}  // namespace

std::vector<RailWire> WiresOf(const FabricNode& node, int rails) {
  std::vector<RailWire> wires;
  // Dead rails count as NICs; the node does not specify which other rails have a NIC.
  int alive = node.hcas - static_cast<int>(node.dead_rails.size());
  for (int rail = 0; rail < rails; ++rail) {
    const bool dead = std::binary_search(node.dead_rails.begin(), node.dead_rails.end(), rail);
    if (!dead && alive-- <= 0) continue;
    wires.push_back({rail, "", "", "", 0, dead, false});
  }
  return wires;
}

absl::StatusOr<DiscoveredFabric> FuseObservations(const Observations& seen,
                                                  absl::string_view name) {
  return Fusion(seen).Run(name);
}

}  // namespace railhead::fabric
