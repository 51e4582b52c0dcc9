// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/leaf_groups.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace railhead::fabric {
namespace {

// Of groups at a switch, when another has told already who can have most cables.
constexpr size_t kMaxLooked = 64;

// Nodes with the very same cables.
struct Alike {
  SwitchOfRail switches;
  std::vector<int> nodes;
  int known = 0;
};

std::vector<Alike> ByLikeness(const std::vector<SwitchOfRail>& nodes) {
  std::map<SwitchOfRail, std::vector<int>> found;
  for (size_t i = 0; i < nodes.size(); ++i) found[nodes[i]].push_back(static_cast<int>(i));
  std::vector<Alike> alike;
  for (auto& [switches, members] : found) {
    const auto known =
        std::count_if(switches.begin(), switches.end(), [](int s) { return s >= 0; });
    if (known > 0) alike.push_back({switches, std::move(members), static_cast<int>(known)});
  }
  // Those that many nodes have are right before those that few have, and whole ones before others.
  std::sort(alike.begin(), alike.end(), [](const Alike& a, const Alike& b) {
    if (a.nodes.size() != b.nodes.size()) return a.nodes.size() > b.nodes.size();
    if (a.known != b.known) return a.known > b.known;
    return a.nodes < b.nodes;
  });
  return alike;
}

class Groups {
 public:
  explicit Groups(size_t nodes) { found_.group_of_node.assign(nodes, -1); }

  void Add(const Alike& alike) {
    const auto [group, shared] = Nearest(alike.switches);
    const bool fits = shared * 2 > alike.known;
    // One node that is half in one group and half in another makes no group of its own.
    const bool between = shared * 2 == alike.known && alike.nodes.size() == 1;
    const int chosen = fits || between ? group : Open(alike.switches);
    for (const int node : alike.nodes) {
      found_.group_of_node[static_cast<size_t>(node)] = chosen;
    }
  }

  LeafGroups Finish(const std::vector<SwitchOfRail>& nodes, const std::vector<bool>& certain) {
    const size_t rails = nodes.empty() ? 0 : nodes[0].size();
    std::vector<std::vector<std::map<int, int>>> votes(cables_.size(),
                                                       std::vector<std::map<int, int>>(rails));
    std::vector<bool> has_certain(cables_.size());
    for (size_t node = 0; node < nodes.size(); ++node) {
      const int group = found_.group_of_node[node];
      if (group >= 0 && certain[node]) has_certain[static_cast<size_t>(group)] = true;
    }
    for (size_t node = 0; node < nodes.size(); ++node) {
      const int group = found_.group_of_node[node];
      if (group < 0 || (!certain[node] && has_certain[static_cast<size_t>(group)])) continue;
      for (size_t rail = 0; rail < rails; ++rail) {
        const int at = nodes[node][rail];
        if (at >= 0) ++votes[static_cast<size_t>(group)][rail][at];
      }
    }
    for (const auto& of_group : votes) {
      SwitchOfRail right;
      std::set<int> split;
      for (const std::map<int, int>& of_rail : of_group) {
        const auto most =
            std::max_element(of_rail.begin(), of_rail.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
        int all = 0;
        for (const auto& [at, count] : of_rail) all += count;
        if (all > 0 && most->second * 2 <= all) split.insert(static_cast<int>(right.size()));
        right.push_back(most == of_rail.end() ? -1 : most->first);
      }
      found_.split.push_back(std::move(split));
      found_.switches.push_back(std::move(right));
    }
    return std::move(found_);
  }

 private:
  // The group that has most of these cables, and how many. Whoever has more than half of them has
  // one of any half, so of switches that many groups share (one that all nodes have a NIC at) not
  // all groups are looked at.
  std::pair<int, int> Nearest(const SwitchOfRail& switches) const {
    std::map<int, int> wanted;
    int known = 0;
    for (const int at : switches) {
      if (at < 0) continue;
      ++wanted[at];
      ++known;
    }
    const auto groups_of = [this](int at) -> const std::vector<int>& {
      const auto found = groups_at_.find(at);
      return found == groups_at_.end() ? none_ : found->second;
    };
    std::vector<int> rarest;
    rarest.reserve(wanted.size());
    for (const auto& [at, count] : wanted) rarest.push_back(at);
    std::stable_sort(rarest.begin(), rarest.end(),
                     [&](int a, int b) { return groups_of(a).size() < groups_of(b).size(); });
    std::set<int> candidates;
    int looked_at = 0;
    for (const int at : rarest) {
      const std::vector<int>& groups = groups_of(at);
      const bool all = looked_at * 2 < known;
      const size_t count = all ? groups.size() : std::min(groups.size(), kMaxLooked);
      candidates.insert(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(count));
      looked_at += wanted[at];
    }
    std::pair<int, int> best = {-1, 0};
    for (const int group : candidates) {
      const std::map<int, int>& cables = cables_[static_cast<size_t>(group)];
      int shared = 0;
      for (const auto& [at, number] : wanted) {
        const auto there = cables.find(at);
        if (there != cables.end()) shared += std::min(number, there->second);
      }
      if (shared > best.second) best = {group, shared};
    }
    return best;
  }

  int Open(const SwitchOfRail& switches) {
    const auto group = static_cast<int>(cables_.size());
    cables_.emplace_back();
    for (const int at : switches) {
      if (at >= 0 && ++cables_.back()[at] == 1) groups_at_[at].push_back(group);
    }
    return group;
  }

  const std::vector<int> none_;
  LeafGroups found_;
  std::vector<std::map<int, int>> cables_;               // [group]: switch and number
  std::unordered_map<int, std::vector<int>> groups_at_;  // of each switch
};

}  // namespace

LeafGroups GroupByLeaves(const std::vector<SwitchOfRail>& nodes, const std::vector<bool>& certain) {
  Groups groups(nodes.size());
  for (const Alike& alike : ByLikeness(nodes)) groups.Add(alike);
  return groups.Finish(nodes, certain);
}

}  // namespace railhead::fabric
