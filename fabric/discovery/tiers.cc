// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/tiers.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace railhead::fabric {
namespace {

// Disjoint sets (union-find).
class Sets {
 public:
  explicit Sets(size_t count) : above_(count) { std::iota(above_.begin(), above_.end(), 0); }

  int Find(int i) {
    while (above_[static_cast<size_t>(i)] != i) {
      int& above = above_[static_cast<size_t>(i)];
      above = above_[static_cast<size_t>(above)];
      i = above;
    }
    return i;
  }
  // The lower index represents both, so that the order of joining does not matter.
  void Join(int a, int b) {
    a = Find(a);
    b = Find(b);
    above_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int> above_;
};

constexpr int kNone = -1;

using Neighbours = std::vector<std::vector<int>>;  // of each switch

Neighbours NeighboursOf(int switches, const std::set<std::pair<int, int>>& links) {
  Neighbours neighbours(static_cast<size_t>(switches));
  for (const auto& [a, b] : links) {
    neighbours[static_cast<size_t>(a)].push_back(b);
    neighbours[static_cast<size_t>(b)].push_back(a);
  }
  return neighbours;
}

// Returns the tier of each switch; kNone if no cables lead there from a leaf.
std::vector<int> TierOf(const std::vector<SwitchOfRail>& groups, const Neighbours& neighbours) {
  std::vector<int> tier(neighbours.size(), kNone);
  std::vector<int> layer;
  for (const SwitchOfRail& group : groups) {
    for (const int at : group) {
      if (at < 0 || tier[static_cast<size_t>(at)] != kNone) continue;
      tier[static_cast<size_t>(at)] = 0;
      layer.push_back(at);
    }
  }
  while (!layer.empty()) {
    std::vector<int> above;
    for (const int at : layer) {
      for (const int next : neighbours[static_cast<size_t>(at)]) {
        if (tier[static_cast<size_t>(next)] != kNone) continue;
        tier[static_cast<size_t>(next)] = tier[static_cast<size_t>(at)] + 1;
        above.push_back(next);
      }
    }
    layer = std::move(above);
  }
  return tier;
}

// Switches whose cables connect what is separate below them.
class Connecting {
 public:
  Connecting(const std::vector<SwitchOfRail>& leaves, const Neighbours& neighbours)
      : neighbours_(neighbours),
        tier_(TierOf(leaves, neighbours)),
        connects_(tier_.size()),
        below_(tier_.size()) {
    for (const SwitchOfRail& leaf : leaves) {
      int first = kNone;
      for (const int at : leaf) {
        if (at < 0) continue;
        if (first == kNone) first = at;
        below_.Join(first, at);
      }
    }
    const auto top = std::max_element(tier_.begin(), tier_.end());
    for (int level = 1; top != tier_.end() && level <= *top; ++level) Level(level);
  }

  int tier(int at) const { return tier_[static_cast<size_t>(at)]; }
  bool connects(int at) const { return connects_[static_cast<size_t>(at)]; }

 private:
  void Level(int level) {
    std::vector<int> here;
    for (size_t at = 0; at < tier_.size(); ++at) {
      if (tier_[at] == level) here.push_back(static_cast<int>(at));
    }
    for (const int at : here) connects_[static_cast<size_t>(at)] = Connects(at);
    for (const int at : here) {
      for (const int next : neighbours_[static_cast<size_t>(at)]) {
        if (tier(next) == level - 1) below_.Join(at, next);
      }
    }
  }

  bool Connects(int at) {
    std::set<int> parts;
    size_t all = 0;
    size_t in_a_tree = 0;
    for (const int next : neighbours_[static_cast<size_t>(at)]) {
      if (tier(next) != tier(at) - 1) continue;
      parts.insert(below_.Find(next));
      ++all;
      if (InATree(next)) ++in_a_tree;
    }
    return parts.size() > 1 && in_a_tree * 2 > all;
  }

  // In a torus, most cables of a switch lead to switches of the same tier.
  bool InATree(int at) {
    size_t up = 0;
    size_t sideways = 0;
    for (const int next : neighbours_[static_cast<size_t>(at)]) {
      if (tier(next) > tier(at)) ++up;
      if (tier(next) == tier(at) && below_.Find(next) != below_.Find(at)) ++sideways;
    }
    return up > sideways;
  }

  const Neighbours& neighbours_;
  std::vector<int> tier_;
  std::vector<bool> connects_;
  Sets below_;  // what is connected below the current level
};

bool FewerThanCables(const SwitchOfRail& group, size_t nodes, const Neighbours& neighbours) {
  const std::set<int> own(group.begin(), group.end());
  std::set<std::pair<int, int>> cables;
  for (const int at : own) {
    if (at < 0) continue;
    for (const int next : neighbours[static_cast<size_t>(at)]) {
      if (own.count(next) == 0) cables.emplace(at, next);
    }
  }
  return nodes < cables.size();
}

// Returns the groups that may be hosts above the leaves, by their nodes.
std::vector<bool> Doubtful(const std::vector<SwitchOfRail>& groups,
                           const std::vector<GroupNodes>& nodes, const Neighbours& neighbours) {
  bool told = false;
  size_t most = 0;
  for (const GroupNodes& group : nodes) {
    told = told || group.compute;
    most = std::max(most, group.count);
  }
  std::vector<bool> doubtful(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    doubtful[i] =
        told ? !nodes[i].compute
             : nodes[i].count * 2 <= most && FewerThanCables(groups[i], nodes[i].count, neighbours);
  }
  return doubtful;
}

}  // namespace

std::vector<bool> GroupsAbove(const std::vector<SwitchOfRail>& groups,
                              const std::vector<GroupNodes>& nodes, int switches,
                              const std::set<std::pair<int, int>>& links) {
  const Neighbours neighbours = NeighboursOf(switches, links);
  std::vector<bool> above = Doubtful(groups, nodes, neighbours);
  std::vector<SwitchOfRail> leaves = groups;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (above[i]) leaves[i].clear();
  }
  while (std::count(above.begin(), above.end(), true) > 0) {
    const Connecting connecting(leaves, neighbours);
    // The farthest go back first: small leaves of another pod are behind its spines.
    int farthest = kNone;
    std::vector<size_t> wrong;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (!above[i]) continue;
      bool connects = false;
      bool ends = false;
      int tier = kNone;
      for (const int at : groups[i]) {
        if (at < 0 || connecting.tier(at) == kNone) continue;
        tier = std::max(tier, connecting.tier(at));
        (connecting.connects(at) ? connects : ends) = true;
      }
      if (connects && !ends) continue;
      const int distance = tier == kNone ? switches : tier;
      if (distance > farthest) wrong.clear();
      if (distance >= farthest) wrong.push_back(i);
      farthest = std::max(farthest, distance);
    }
    if (wrong.empty()) break;
    for (const size_t i : wrong) {
      above[i] = false;
      leaves[i] = groups[i];
    }
  }
  return above;
}

Tiers FindTiers(const std::vector<SwitchOfRail>& groups, int switches,
                const std::set<std::pair<int, int>>& links) {
  const Neighbours neighbours = NeighboursOf(switches, links);
  const std::vector<int> tier = TierOf(groups, neighbours);
  const int top = tier.empty() ? 0 : std::max(0, *std::max_element(tier.begin(), tier.end()));

  // Groups first, then switches.
  const auto count = static_cast<int>(groups.size());
  Sets sets(groups.size() + tier.size());
  Tiers found;
  for (int level = 0; level <= top; ++level) {
    if (level == 1) {
      for (int group = 0; group < count; ++group) {
        for (const int at : groups[static_cast<size_t>(group)]) {
          if (at >= 0) sets.Join(group, count + at);
        }
      }
    }
    Sets below = sets;
    for (const auto& [a, b] : links) {
      const int low = std::min(tier[static_cast<size_t>(a)], tier[static_cast<size_t>(b)]);
      const int high = std::max(tier[static_cast<size_t>(a)], tier[static_cast<size_t>(b)]);
      if (low == high && low == level) found.sideways.emplace_back(a, b);
      if (low >= 0 && high == level && low < high) sets.Join(count + a, count + b);
    }
    std::map<int, Tiers::Domain> domains;
    for (int group = 0; group < count; ++group) {
      domains[sets.Find(group)].groups.push_back(group);
    }
    if (level == 0) {
      for (auto& [group, domain] : domains) {
        std::set<int> at(groups[static_cast<size_t>(group)].begin(),
                         groups[static_cast<size_t>(group)].end());
        at.erase(-1);
        domain.switches.assign(at.begin(), at.end());
      }
    } else {
      // From cores on, a switch connected to only one domain (an empty leaf, a storage leaf) is not
      // above it.
      const auto joins = [&](int at) {
        std::set<int> joined;
        for (const int next : neighbours[static_cast<size_t>(at)]) {
          if (tier[static_cast<size_t>(next)] < level) joined.insert(below.Find(count + next));
        }
        return level == 1 || joined.size() > 1;
      };
      for (int at = 0; at < switches; ++at) {
        if (tier[static_cast<size_t>(at)] != level || !joins(at)) continue;
        domains[sets.Find(count + at)].switches.push_back(at);
      }
    }
    if (level > 1 && domains.size() == found.domains.back().size()) break;
    found.domains.emplace_back();
    for (auto& [set, domain] : domains) found.domains.back().push_back(std::move(domain));
  }
  return found;
}

}  // namespace railhead::fabric
