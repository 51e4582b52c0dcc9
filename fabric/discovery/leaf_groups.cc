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

// Nodes of one kind with cables at the very same switches.
struct Alike {
  int kind = 0;
  std::vector<int> switches;  // of each cable, in ascending order
  std::vector<int> nodes;
};

std::vector<Alike> ByLikeness(const std::vector<NodeCables>& nodes) {
  std::map<std::pair<int, std::vector<int>>, std::vector<int>> found;
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<int> switches;
    for (const std::vector<int>& rail : nodes[i].rails) {
      switches.insert(switches.end(), rail.begin(), rail.end());
    }
    if (switches.empty()) continue;
    std::sort(switches.begin(), switches.end());
    found[{nodes[i].kind, std::move(switches)}].push_back(static_cast<int>(i));
  }
  std::vector<Alike> alike;
  for (auto& [what, members] : found) {
    alike.push_back({what.first, what.second, std::move(members)});
  }
  // Those that many nodes have are right before those that few have, and whole ones before others.
  std::sort(alike.begin(), alike.end(), [](const Alike& a, const Alike& b) {
    if (a.nodes.size() != b.nodes.size()) return a.nodes.size() > b.nodes.size();
    if (a.switches.size() != b.switches.size()) return a.switches.size() > b.switches.size();
    return a.nodes < b.nodes;
  });
  return alike;
}

class Groups {
 public:
  explicit Groups(size_t nodes) { found_.group_of_node.assign(nodes, -1); }

  void Add(const Alike& alike) {
    const auto [group, shared] = Nearest(alike.switches);
    size_t enough = alike.switches.size();
    if (group >= 0 && kind_[static_cast<size_t>(group)] != alike.kind) {
      enough = std::min(enough, size_[static_cast<size_t>(group)]);
    }
    const bool fits = shared * 2 > enough;
    // One node that is half in one group and half in another makes no group of its own.
    const bool between = shared * 2 == enough && alike.nodes.size() == 1;
    const int chosen = fits || between ? group : Open(alike);
    for (const int node : alike.nodes) {
      found_.group_of_node[static_cast<size_t>(node)] = chosen;
    }
  }

  LeafGroups Take() { return std::move(found_); }

 private:
  // The group that has most of these cables, and how many. Whoever has more than half of them has
  // one of any half, so of switches that many groups share (one that all nodes have a NIC at) not
  // all groups are looked at.
  std::pair<int, size_t> Nearest(const std::vector<int>& switches) const {
    std::map<int, size_t> wanted;
    for (const int at : switches) ++wanted[at];
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
    size_t looked_at = 0;
    for (const int at : rarest) {
      const std::vector<int>& groups = groups_of(at);
      const bool all = looked_at * 2 < switches.size();
      const size_t count = all ? groups.size() : std::min(groups.size(), kMaxLooked);
      candidates.insert(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(count));
      looked_at += wanted[at];
    }
    std::pair<int, size_t> best = {-1, 0};
    for (const int group : candidates) {
      const std::map<int, size_t>& cables = cables_[static_cast<size_t>(group)];
      size_t shared = 0;
      for (const auto& [at, number] : wanted) {
        const auto there = cables.find(at);
        if (there != cables.end()) shared += std::min(number, there->second);
      }
      if (shared > best.second) best = {group, shared};
    }
    return best;
  }

  int Open(const Alike& alike) {
    cables_.emplace_back();
    kind_.push_back(alike.kind);
    size_.push_back(alike.switches.size());
    for (const int at : alike.switches) {
      if (++cables_.back()[at] == 1) groups_at_[at].push_back(found_.count);
    }
    return found_.count++;
  }

  const std::vector<int> none_;
  LeafGroups found_;
  std::vector<std::map<int, size_t>> cables_;            // [group]: switch and number
  std::vector<int> kind_;                                // [group], of who made it
  std::vector<size_t> size_;                             // [group], its number of cables
  std::unordered_map<int, std::vector<int>> groups_at_;  // of each switch
};

}  // namespace

LeafGroups GroupByLeaves(const std::vector<NodeCables>& nodes) {
  Groups groups(nodes.size());
  for (const Alike& alike : ByLikeness(nodes)) groups.Add(alike);
  return groups.Take();
}

}  // namespace railhead::fabric
