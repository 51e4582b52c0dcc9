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
#include "base/finding.h"
#include "fabric/discovery/checks.h"
#include "fabric/discovery/free_name.h"
#include "fabric/discovery/label_schemes.h"
#include "fabric/discovery/listed.h"
#include "fabric/discovery/observations.h"
#include "fabric/discovery/place_labels.h"
#include "fabric/natural_order.h"

namespace railhead::fabric {
namespace {

// Returns the scheme's levels that most nodes have, in its order.
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

// Returns the values of these levels; fewer if the place lacks some.
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

  // Determines which domain contains which, from the outermost level inwards.
  void Settle() {
    for (size_t level = 1; level < places_.levels.size(); ++level) {
      std::map<std::string, Around> around_of;  // by value
      for (const auto& [node, path] : places_.of_node) {
        ++around_of[path[level]][Outside(path, level)];
      }
      const bool relative = Relative(around_of);
      std::set<std::string> taken;
      for (const auto& [value, around] : around_of) taken.insert(value);
      std::map<std::pair<std::string, Path>, std::string> renamed;
      for (const auto& [value, around] : around_of) {
        bool first = true;
        for (const auto& [outside, nodes] : around) {
          if (!relative && !Homes(around, nodes)) continue;
          if (!first) {
            renamed[{value, outside}] = FreeName(absl::StrCat(outside.back(), "-", value), taken);
          }
          first = false;
        }
      }
      for (auto& [node, path] : places_.of_node) {
        const Path outside = Outside(path, level);
        const Around& around = around_of[path[level]];
        if (!relative && !Homes(around, around.at(outside))) {
          Correct(node, level, around, path);
        }
        const auto other = renamed.find({path[level], Outside(path, level)});
        if (other != renamed.end()) path[level] = other->second;
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
    // Names in a model are unique, so each new name differs from all others.
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
  using Path = std::vector<std::string>;
  struct InOrder {
    bool operator()(const Path& a, const Path& b) const {
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), NaturalLess);
    }
  };
  using Around = std::map<Path, size_t, InOrder>;  // the nodes of a value, by what is around it

  static Path Outside(const Path& path, size_t level) {
    return {path.begin(), path.begin() + static_cast<std::ptrdiff_t>(level)};
  }

  static size_t Most(const Around& around) {
    size_t most = 0;
    for (const auto& [outside, nodes] : around) most = std::max(most, nodes);
    return most;
  }

  // Returns whether this number of nodes makes a domain: a wrong label on one node, or on a few of
  // many, does not.
  static bool Homes(const Around& around, size_t nodes) {
    const size_t most = Most(around);
    return nodes == most || (nodes > 1 && nodes * 4 > most);
  }

  // Returns whether values are unique only inside their outer domain: more values are in several
  // domains than in one.
  static bool Relative(const std::map<std::string, Around>& around_of) {
    size_t several = 0;
    for (const auto& [value, around_value] : around_of) {
      const Around& around = around_value;  // lambdas of C++20 capture it, in every compiler
      const auto homes =
          std::count_if(around.begin(), around.end(),
                        [&around](const auto& outside) { return Homes(around, outside.second); });
      several += homes > 1 ? 1 : 0;
    }
    return several * 2 > around_of.size();
  }

  // Moves the node to the outer domain of most nodes of its domain.
  void Correct(const std::string& node, size_t level, const Around& around, Path& path) {
    const auto most =
        std::max_element(around.begin(), around.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    findings_.push_back({Severity::kFail, kContradiction, node,
                         absl::StrCat(places_.scheme, "'s labels say that ", places_.levels[level],
                                      " ", path[level], " lies in ", path[level - 1], ", those of ",
                                      most->second, " other nodes that it lies in ",
                                      most->first.back(), "; the majority takes precedence"),
                         "correct the labels"});
    std::copy(most->first.begin(), most->first.end(), path.begin());
  }

  void Tell(const std::string& inner, const std::string& outer) {
    findings_.push_back(
        {Severity::kFail, kCycle, inner,
         absl::StrCat("lies in ", outer, " by ", places_.scheme,
                      "'s labels, and vice versa; the levels of each node are used unchanged"),
         "correct the labels"});
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
    findings.push_back(
        {Severity::kFail, kNoPlace, Listed(fewer),
         absl::StrCat("some labels of ", places.scheme, " are missing (most nodes have ",
                      absl::StrJoin(places.levels, ", "), "); the existing ones are not used"),
         "add the missing labels"});
  }
  Reader reader(places, findings);
  reader.Settle();
  reader.FindCycles();
  return places;
}

}  // namespace railhead::fabric
