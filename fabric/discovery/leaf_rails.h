// SPDX-License-Identifier: Apache-2.0
//
// Expected switch of each rail in each leaf, by majority of nodes. Used by CheckCables.
#ifndef RAILHEAD_FABRIC_DISCOVERY_LEAF_RAILS_H_
#define RAILHEAD_FABRIC_DISCOVERY_LEAF_RAILS_H_

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "fabric/discovery/leaf_groups.h"

namespace railhead::fabric {

// The switch of each rail; -1: unknown.
using SwitchOfRail = std::vector<int>;

// Cables of one rail, of the nodes of one kind in one leaf.
class RailPlaces {
 public:
  void Add(const std::vector<int>& cables);

  // Returns the switch of most nodes (on a tie, the lower number); -1 if none is known.
  int right() const;
  // Returns true if no switch has more than half of the nodes: no cable can be called wrong then.
  bool split() const;
  // Returns true if a node with `cables` cables has one where most such nodes have none. All cables
  // of a bond count, in any order; nodes with fewer known cables are not evidence.
  bool Wrong(int at, size_t cables) const;

 private:
  struct Votes {
    size_t nodes = 0;
    std::map<int, size_t> at;
  };
  std::map<size_t, Votes> votes_;  // of nodes with at least this number of cables
};

// All leaves. The majority of the nodes of a kind is right.
class LeafRails {
 public:
  LeafRails(const std::vector<NodeCables>& nodes, const LeafGroups& groups);

  const RailPlaces& Of(int group, int kind, size_t rail) const;
  // For each group, the switches of the kind of most of its nodes.
  const std::vector<SwitchOfRail>& shown() const { return shown_; }
  // The group's own switches: of that kind, and those of other kinds at which no other group has
  // more nodes.
  const std::set<int>& Switches(int group) const { return switches_[static_cast<size_t>(group)]; }
  // For each group, the kind of most of its nodes; -1: none is certain.
  int KindShown(int group) const { return kind_shown_[static_cast<size_t>(group)]; }

 private:
  using OfKind = std::map<int, std::vector<RailPlaces>>;

  std::vector<OfKind> places_;  // [group]
  std::vector<SwitchOfRail> shown_;
  std::vector<int> kind_shown_;
  std::vector<std::set<int>> switches_;
};

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_LEAF_RAILS_H_
