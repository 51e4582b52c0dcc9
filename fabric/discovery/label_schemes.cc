// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/label_schemes.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/finding.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/listed.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/place_labels.h"

namespace railhead::fabric {
namespace {

// A level and the values from the outermost level to it: some values are unique only inside their
// outer domain.
using Domain = std::pair<std::string, std::vector<std::string>>;

std::vector<Domain> DomainsOf(const SeenPlace& place) {
  std::vector<Domain> domains;
  std::vector<std::string> path;
  for (const auto& [level, value] : place.levels) {
    path.push_back(value);
    domains.emplace_back(level, path);
  }
  return domains;
}

// Two domains that overlap without containing one another, and the nodes that they share.
struct Crossing {
  Domain chosen;
  Domain other;
  std::vector<std::string> nodes;  // that they share
};

std::vector<Crossing> Crossings(const std::vector<const SeenNode*>& nodes,
                                const std::string& chosen, const std::string& other) {
  std::map<Domain, size_t> of_chosen;
  std::map<Domain, size_t> of_other;
  std::map<std::pair<Domain, Domain>, std::vector<std::string>> shared;
  for (const SeenNode* node : nodes) {
    const SeenPlace* a = PlaceOf(*node, chosen);
    const SeenPlace* b = PlaceOf(*node, other);
    if (a == nullptr || b == nullptr) continue;
    const std::vector<Domain> xs = DomainsOf(*a);
    for (const Domain& x : xs) ++of_chosen[x];
    for (const Domain& y : DomainsOf(*b)) {
      ++of_other[y];
      for (const Domain& x : xs) shared[{x, y}].push_back(node->name);
    }
  }
  std::vector<Crossing> crossings;
  for (auto& [domains, names] : shared) {
    const auto& [x, y] = domains;
    if (names.size() == of_chosen[x] || names.size() == of_other[y]) continue;
    std::sort(names.begin(), names.end());
    crossings.push_back({x, y, std::move(names)});
  }
  // If few nodes are in both, these nodes' labels are probably wrong.
  std::stable_sort(crossings.begin(), crossings.end(), [](const Crossing& a, const Crossing& b) {
    return a.nodes.size() < b.nodes.size();
  });
  return crossings;
}

}  // namespace

std::vector<const SeenNode*> CountingNodes(const std::vector<SeenNode>& nodes) {
  std::vector<const SeenNode*> counting;
  for (const bool all : {false, true}) {
    for (const SeenNode& node : nodes) {
      if (node.places.empty()) continue;
      if (all || node.gpus > 0 || node.hcas > 0 || node.rails.has_value()) {
        counting.push_back(&node);
      }
    }
    if (!counting.empty()) break;
  }
  return counting;
}

const SeenPlace* PlaceOf(const SeenNode& node, const std::string& scheme) {
  for (const SeenPlace& place : node.places) {
    if (place.scheme == scheme) return &place;
  }
  return nullptr;
}

std::string ChooseScheme(const std::vector<SeenNode>& nodes) {
  const std::vector<const SeenNode*> counting = CountingNodes(nodes);
  std::string most;
  std::ptrdiff_t nodes_of_most = 0;
  for (const std::string& scheme : SchemeNames()) {
    const auto with = std::count_if(counting.begin(), counting.end(), [&](const SeenNode* node) {
      return PlaceOf(*node, scheme) != nullptr;
    });
    if (with * 2 > static_cast<std::ptrdiff_t>(counting.size())) return scheme;
    if (with > nodes_of_most) {
      most = scheme;
      nodes_of_most = with;
    }
  }
  return most;
}

void TellOtherSchemes(const std::vector<SeenNode>& nodes, const std::string& chosen,
                      std::vector<Finding>& findings) {
  const std::vector<const SeenNode*> counting = CountingNodes(nodes);
  for (const std::string& other : SchemeNames()) {
    if (other == chosen || !TellsOfNetwork(other) || !TellsOfNetwork(chosen)) continue;
    const std::vector<Crossing> crossings = Crossings(counting, chosen, other);
    if (crossings.empty()) continue;
    const Crossing& first = crossings[0];
    findings.push_back(
        {Severity::kFail, kContradiction, Listed(first.nodes),
         absl::StrCat(other, "'s labels contradict those of ", chosen, ": ", first.other.first, " ",
                      first.other.second.back(), " and ", first.chosen.first, " ",
                      first.chosen.second.back(),
                      " share these nodes, and neither contains the other",
                      crossings.size() == 1
                          ? ""
                          : absl::StrCat(" (and ", crossings.size() - 1, " more such pairs)"),
                      "; ", chosen, "'s labels take precedence"),
         "correct the labels"});
  }
  std::vector<std::string> lacking;
  for (const SeenNode* node : counting) {
    if (PlaceOf(*node, chosen) == nullptr) lacking.push_back(node->name);
  }
  if (lacking.empty()) return;
  std::sort(lacking.begin(), lacking.end());
  findings.push_back({Severity::kNote, kNoPlace, Listed(lacking),
                      absl::StrCat("no labels of ", chosen,
                                   ", which more nodes have; labels of other schemes are ignored, "
                                   "as one scheme applies to all nodes"),
                      absl::StrCat("label them as ", chosen, " does, or all nodes in one scheme")});
}

}  // namespace railhead::fabric
