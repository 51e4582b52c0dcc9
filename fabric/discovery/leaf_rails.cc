// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/leaf_rails.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "fabric/discovery/leaf_groups.h"

namespace railhead::fabric {

void RailPlaces::Add(const std::vector<int>& cables) {
  const std::set<int> at(cables.begin(), cables.end());
  for (size_t number = 1; number <= cables.size(); ++number) {
    Votes& votes = votes_[number];
    ++votes.nodes;
    for (const int which : at) ++votes.at[which];
  }
}

int RailPlaces::right() const {
  const auto all = votes_.find(1);
  if (all == votes_.end()) return -1;
  return std::max_element(all->second.at.begin(), all->second.at.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

bool RailPlaces::split() const {
  const auto all = votes_.find(1);
  return all != votes_.end() && all->second.at.at(right()) * 2 <= all->second.nodes;
}

bool RailPlaces::Wrong(int at, size_t cables) const {
  const auto votes = votes_.find(cables);
  if (votes == votes_.end() || split()) return false;
  const auto here = votes->second.at.find(at);
  return here == votes->second.at.end() || here->second * 2 < votes->second.nodes;
}

LeafRails::LeafRails(const std::vector<NodeCables>& nodes, const LeafGroups& groups) {
  const auto count = static_cast<size_t>(groups.count);
  const size_t rails = nodes.empty() ? 0 : nodes[0].rails.size();
  places_.resize(count);
  switches_.resize(count);
  std::vector<std::map<int, size_t>> members(count);  // of each kind
  std::map<int, std::map<size_t, size_t>> nodes_at;   // of each switch, by group
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (groups.group_of_node[i] < 0) continue;
    const auto group = static_cast<size_t>(groups.group_of_node[i]);
    const int kind = nodes[i].certain ? nodes[i].kind : -1;
    ++members[group][kind];
    std::vector<RailPlaces>& places = places_[group][kind];
    places.resize(rails);
    std::set<int> here;
    for (size_t rail = 0; rail < rails; ++rail) {
      places[rail].Add(nodes[i].rails[rail]);
      here.insert(nodes[i].rails[rail].begin(), nodes[i].rails[rail].end());
    }
    for (const int at : here) ++nodes_at[at][group];
  }
  std::map<int, size_t> most_at;  // of each switch
  for (const auto& [at, of_group] : nodes_at) {
    for (const auto& [group, number] : of_group) most_at[at] = std::max(most_at[at], number);
  }
  for (size_t group = 0; group < count; ++group) {
    // Uncertain nodes come first, and count only if there are no others.
    auto most = members[group].begin();
    for (auto kind = members[group].begin(); kind != members[group].end(); ++kind) {
      if (most->first < 0 || kind->second > most->second) most = kind;
    }
    kind_shown_.push_back(most->first);
    SwitchOfRail& shown = shown_.emplace_back();
    for (const RailPlaces& places : places_[group][most->first]) shown.push_back(places.right());
    for (const auto& [kind, of_rail] : places_[group]) {
      if (kind < 0 && most->first >= 0) continue;
      for (size_t rail = 0; rail < rails; ++rail) {
        const int at = of_rail[rail].right();
        const bool ours = at >= 0 && nodes_at[at][group] == most_at[at];
        if (at >= 0 && (kind == most->first || ours)) switches_[group].insert(at);
        if (ours && shown[rail] < 0) shown[rail] = at;
      }
    }
  }
}

const RailPlaces& LeafRails::Of(int group, int kind, size_t rail) const {
  return places_[static_cast<size_t>(group)].at(kind).at(rail);
}

}  // namespace railhead::fabric
