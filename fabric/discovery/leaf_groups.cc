// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/leaf_groups.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace railhead::fabric {
namespace {

// Maximum number of groups per switch to examine, if another switch has already limited the
// candidates.
constexpr size_t kMaxLooked = 64;
// Maximum number of groups per switch to examine otherwise: a switch with more is not a leaf
// switch.
constexpr size_t kMaxNeeded = 4096;

// Nodes of one kind with cables at exactly the same switches.
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
  alike.reserve(found.size());
  for (auto& [what, members] : found) {
    alike.push_back({what.first, what.second, std::move(members)});
  }
  // Common sets of switches take precedence over rare ones, and complete sets over incomplete ones.
  std::sort(alike.begin(), alike.end(), [](const Alike& a, const Alike& b) {
    if (a.nodes.size() != b.nodes.size()) return a.nodes.size() > b.nodes.size();
    if (a.switches.size() != b.switches.size()) return a.switches.size() > b.switches.size();
    return a.nodes < b.nodes;
  });
  return alike;
}

// Neighbours of one kind.
struct Group {
  int kind = 0;
  size_t nodes = 0;
  size_t size = 0;               // cables per node, as in the nodes that formed the group
  std::map<int, size_t> cables;  // number of cables by switch
};

std::map<int, size_t> Counted(const std::vector<int>& switches) {
  std::map<int, size_t> counted;
  for (const int at : switches) ++counted[at];
  return counted;
}

size_t Shared(const std::map<int, size_t>& a, const std::map<int, size_t>& b) {
  size_t shared = 0;
  for (const auto& [at, number] : a) {
    const auto there = b.find(at);
    if (there != b.end()) shared += std::min(number, there->second);
  }
  return shared;
}

// Index of groups by their switches, in the order of insertion.
class GroupsAt {
 public:
  void Add(int group, const std::map<int, size_t>& cables) {
    for (const auto& [at, number] : cables) groups_at_[at].push_back(group);
  }

  // Returns the groups that may share half of these cables or more. Such a group has a cable of any
  // half, so for a switch that many groups share (one with a NIC of every node) not all groups are
  // examined.
  std::set<int> Candidates(const std::map<int, size_t>& wanted, size_t size) const {
    std::vector<int> rarest;
    rarest.reserve(wanted.size());
    for (const auto& [at, count] : wanted) rarest.push_back(at);
    std::stable_sort(rarest.begin(), rarest.end(),
                     [this](int a, int b) { return At(a).size() < At(b).size(); });
    std::set<int> candidates;
    size_t looked_at = 0;
    for (const int at : rarest) {
      const std::vector<int>& groups = At(at);
      const bool all = looked_at * 2 < size;
      const size_t count = std::min(groups.size(), all ? kMaxNeeded : kMaxLooked);
      candidates.insert(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(count));
      looked_at += wanted.at(at);
    }
    return candidates;
  }

 private:
  const std::vector<int>& At(int at) const {
    const auto found = groups_at_.find(at);
    return found == groups_at_.end() ? none_ : found->second;
  }

  const std::vector<int> none_ = {};
  std::unordered_map<int, std::vector<int>> groups_at_;
};

class Groups {
 public:
  explicit Groups(size_t nodes) { found_.group_of_node.assign(nodes, -1); }

  // Adds the nodes to a group of their kind.
  void Add(const Alike& alike) {
    const std::map<int, size_t> wanted = Counted(alike.switches);
    const size_t size = alike.switches.size();
    GroupsAt& of_kind = of_kind_[alike.kind];
    int nearest = -1;
    size_t most = 0;
    for (const int group : of_kind.Candidates(wanted, size)) {
      const size_t shared = Shared(wanted, groups_[static_cast<size_t>(group)].cables);
      if (shared > most) {
        nearest = group;
        most = shared;
      }
    }
    // A single node that is half in one group and half in another does not form a group.
    const bool between = most * 2 == size && alike.nodes.size() == 1;
    if (most * 2 <= size && !between) {
      nearest = static_cast<int>(groups_.size());
      groups_.push_back({alike.kind, 0, size, wanted});
      of_kind.Add(nearest, wanted);
    }
    groups_[static_cast<size_t>(nearest)].nodes += alike.nodes.size();
    for (const int node : alike.nodes) found_.group_of_node[static_cast<size_t>(node)] = nearest;
  }

  // Joins groups of different kinds into leaves.
  LeafGroups Take() {
    const std::vector<std::vector<Neighbour>> neighbours = Neighbours();
    std::vector<int> leaf(groups_.size(), -1);
    std::vector<bool> first(groups_.size());  // of a leaf
    for (const int group : ByNodes()) {
      const auto g = static_cast<size_t>(group);
      Neighbour nearest;
      bool several = false;
      for (const Neighbour& other : neighbours[g]) {
        if (!first[static_cast<size_t>(other.group)] || other.shared < nearest.shared) continue;
        const bool equal = other.shared == nearest.shared;
        several = equal && (several || other.group != nearest.group);
        if (!equal || other.group < nearest.group) nearest = other;
      }
      if (nearest.group >= 0 && (!several || groups_[g].nodes == 1)) {
        leaf[g] = leaf[static_cast<size_t>(nearest.group)];
      } else {
        leaf[g] = found_.count++;
        first[g] = true;
      }
    }
    for (int& group : found_.group_of_node) {
      if (group >= 0) group = leaf[static_cast<size_t>(group)];
    }
    return std::move(found_);
  }

 private:
  struct Neighbour {
    int group = -1;
    size_t shared = 0;  // cables
  };

  // Returns the groups with most nodes first.
  std::vector<int> ByNodes() const {
    std::vector<int> order(groups_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [this](int a, int b) {
      return groups_[static_cast<size_t>(a)].nodes > groups_[static_cast<size_t>(b)].nodes;
    });
    return order;
  }

  // Returns for each group the groups of other kinds that may be in its leaf. The switches of the
  // smaller group must identify the larger one: a group at a switch that several groups of a kind
  // share (a converged one) is a neighbour of none of them, and does not make them neighbours.
  std::vector<std::vector<Neighbour>> Neighbours() const {
    GroupsAt all;
    for (const int group : ByNodes()) all.Add(group, groups_[static_cast<size_t>(group)].cables);
    std::vector<std::vector<Neighbour>> neighbours(groups_.size());
    for (size_t small = 0; small < groups_.size() && of_kind_.size() > 1; ++small) {
      const Group& own = groups_[small];
      struct Best {
        Neighbour neighbour;
        bool several = false;
      };
      std::map<int, Best> of_kind;
      for (const int group : all.Candidates(own.cables, own.size)) {
        const Group& other = groups_[static_cast<size_t>(group)];
        if (other.kind == own.kind || other.size < own.size) continue;
        const size_t shared = Shared(own.cables, other.cables);
        Best& best = of_kind[other.kind];
        if (shared * 2 <= own.size || shared < best.neighbour.shared) continue;
        best.several = shared == best.neighbour.shared;
        if (!best.several) best.neighbour = {group, shared};
      }
      for (const auto& [kind, best] : of_kind) {
        const auto& [group, shared] = best.neighbour;
        if (group < 0 || (best.several && own.nodes > 1)) continue;
        neighbours[small].push_back({group, shared});
        neighbours[static_cast<size_t>(group)].push_back({static_cast<int>(small), shared});
      }
    }
    return neighbours;
  }

  LeafGroups found_;
  std::vector<Group> groups_;
  std::map<int, GroupsAt> of_kind_;
};

}  // namespace

LeafGroups GroupByLeaves(const std::vector<NodeCables>& nodes) {
  Groups groups(nodes.size());
  for (const Alike& alike : ByLikeness(nodes)) groups.Add(alike);
  return groups.Take();
}

}  // namespace railhead::fabric
