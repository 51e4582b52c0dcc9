// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/label_places.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/discovery/finding.h"
#include "fabric/discovery/free_name.h"
#include "fabric/discovery/label_schemes.h"
#include "fabric/discovery/listed.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/place_labels.h"

namespace railhead::fabric {
namespace {

// The scheme's levels that most nodes have, in its order.
std::vector<std::string> LevelsOf(const std::vector<const SeenNode*>& nodes,
                                  const std::string& scheme) {
  std::map<std::string, size_t> count;
  size_t all = 0;
  size_t most = 0;
  for (const SeenNode* node : nodes) {
    const SeenPlace* place = PlaceOf(*node, scheme);
    if (place == nullptr) continue;
    ++all;
    for (const auto& [level, value] : place->levels) most = std::max(most, ++count[level]);
  }
  std::vector<std::string> levels;
  for (const std::string& level : LevelNames(scheme)) {
    if (count[level] > 0 && count[level] >= std::min(most, all / 2 + 1)) levels.push_back(level);
  }
  return levels;
}

// The values of these levels; fewer where the place lacks some.
std::vector<std::string> ValuesOf(const SeenPlace& place, const std::vector<std::string>& levels) {
  std::vector<std::string> values;
  for (const auto& [level, value] : place.levels) {
    if (std::find(levels.begin(), levels.end(), level) != levels.end()) values.push_back(value);
  }
  return values;
}

class Reader {
 public:
  Reader(LabelPlaces& places, std::vector<Finding>& findings)
      : places_(places), findings_(findings) {}

  // What lies in what, level by level from outside.
  void Settle() {
    for (size_t level = 1; level < places_.levels.size(); ++level) {
      std::map<std::string, std::map<std::vector<std::string>, int>> votes;
      const auto around = [level](const std::vector<std::string>& path) {
        return std::vector<std::string>(path.begin(),
                                        path.begin() + static_cast<std::ptrdiff_t>(level));
      };
      for (const auto& [node, path] : places_.of_node) ++votes[path[level]][around(path)];
      for (auto& [node, path] : places_.of_node) {
        const auto& of_domain = votes[path[level]];
        const auto most =
            std::max_element(of_domain.begin(), of_domain.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
        if (around(path) == most->first) continue;
        findings_.push_back(
            {FindingKind::kContradiction, true, node,
             absl::StrCat(places_.scheme, "'s labels of ", node, " say that ",
                          places_.levels[level], " ", path[level], " lies in ", path[level - 1],
                          ", those of ", most->second, " other nodes that it lies in ",
                          most->first.back(), "; most nodes are believed: correct the labels")});
        std::copy(most->first.begin(), most->first.end(), path.begin());
      }
    }
  }

  void FindCycles() {
    std::set<std::pair<std::string, std::string>> inside;
    for (const auto& [node, path] : places_.of_node) {
      for (size_t i = 1; i < path.size(); ++i) inside.emplace(path[i], path[i - 1]);
    }
    for (const auto& [inner, outer] : inside) {
      if (inner < outer && inside.count({outer, inner}) > 0) Tell(inner, outer);
      if (inner == outer) Tell(inner, "itself");
    }
    // A model has no such names. The new ones are no other domain's.
    std::set<std::string> taken;
    for (const auto& [node, path] : places_.of_node) taken.insert(path.begin(), path.end());
    std::map<std::pair<size_t, std::string>, std::string> renamed;  // by level and old name
    for (auto& [node, path] : places_.of_node) {
      for (size_t i = 1; i < path.size(); ++i) {
        const auto end = path.begin() + static_cast<std::ptrdiff_t>(i);
        if (std::find(path.begin(), end, path[i]) != end) {
          std::string& name = renamed[{i, path[i]}];
          if (name.empty()) {
            name = FreeName(absl::StrCat(path[i], "-", places_.levels[i]), taken);
          }
          path[i] = name;
        }
      }
    }
  }

 private:
  void Tell(const std::string& inner, const std::string& outer) {
    findings_.push_back(
        {FindingKind::kCycle, true, inner,
         absl::StrCat(places_.scheme, "'s labels say that ", inner, " lies in ", outer,
                      " and the other way round; the levels of each node "
                      "are taken as they stand: correct the labels")});
  }

  LabelPlaces& places_;
  std::vector<Finding>& findings_;
};

}  // namespace

LabelPlaces PlacesByLabels(const std::vector<SeenNode>& nodes, std::vector<Finding>& findings) {
  LabelPlaces places;
  places.scheme = ChooseScheme(nodes);
  const std::vector<const SeenNode*> counting = CountingNodes(nodes);
  places.levels = LevelsOf(counting, places.scheme);
  TellOtherSchemes(nodes, places.scheme, findings);
  for (const SeenNode& node : nodes) {
    const SeenPlace* place = PlaceOf(node, places.scheme);
    if (place == nullptr) continue;
    std::vector<std::string> path = ValuesOf(*place, places.levels);
    if (path.size() == places.levels.size()) places.of_node[node.name] = std::move(path);
  }
  std::vector<std::string> fewer;
  for (const SeenNode* node : counting) {
    const bool placed = places.of_node.count(node->name) > 0;
    if (!placed && PlaceOf(*node, places.scheme) != nullptr) fewer.push_back(node->name);
  }
  if (!fewer.empty()) {
    findings.push_back({FindingKind::kNoPlace, true, fewer.size() == 1 ? fewer[0] : "",
                        absl::StrCat(Listed(fewer), ": not all labels of ", places.scheme,
                                     " that most nodes have (", absl::StrJoin(places.levels, ", "),
                                     "); those that are there are not used: add the others")});
  }
  Reader reader(places, findings);
  reader.Settle();
  reader.FindCycles();
  return places;
}

}  // namespace railhead::fabric
