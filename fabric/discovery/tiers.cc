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

}  // namespace

Tiers FindTiers(const std::vector<SwitchOfRail>& groups, int switches,
                const std::set<std::pair<int, int>>& links) {
  constexpr int kNone = -1;
  std::vector<int> tier(static_cast<size_t>(switches), kNone);
  std::vector<std::vector<int>> neighbours(tier.size());
  for (const auto& [a, b] : links) {
    neighbours[static_cast<size_t>(a)].push_back(b);
    neighbours[static_cast<size_t>(b)].push_back(a);
  }
  std::vector<int> layer;
  for (const SwitchOfRail& group : groups) {
    for (const int at : group) {
      if (at < 0 || tier[static_cast<size_t>(at)] != kNone) continue;
      tier[static_cast<size_t>(at)] = 0;
      layer.push_back(at);
    }
  }
  int top = 0;
  while (!layer.empty()) {
    std::vector<int> above;
    for (const int at : layer) {
      for (const int next : neighbours[static_cast<size_t>(at)]) {
        if (tier[static_cast<size_t>(next)] != kNone) continue;
        tier[static_cast<size_t>(next)] = tier[static_cast<size_t>(at)] + 1;
        above.push_back(next);
      }
    }
    if (!above.empty()) ++top;
    layer = std::move(above);
  }

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
