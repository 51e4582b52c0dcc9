// SPDX-License-Identifier: Apache-2.0
//
// Where in a leaf each rail's cables should be, and which do not fit into that.
#ifndef RAILHEAD_FABRIC_DISCOVERY_LEAF_RAILS_H_
#define RAILHEAD_FABRIC_DISCOVERY_LEAF_RAILS_H_

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "fabric/discovery/leaf_groups.h"

namespace railhead::fabric {

// At each rail a switch; -1 where it is not known.
using SwitchOfRail = std::vector<int>;

// The cables of one rail of the nodes of one kind in one leaf.
class RailPlaces {
 public:
  void Add(const std::vector<int>& cables);

  // The switch of most of the nodes (for as many, of the lower number); -1: nobody's is known.
  int right() const;
  // Whether no switch has more than half of the nodes: then none is known to be wrong.
  bool split() const;
  // Whether a node with so many cables has one where most such nodes have none. Of a bond all
  // cables count, in any order; nodes of whose bond fewer cables were seen say nothing of others.
  bool Wrong(int at, size_t cables) const;

 private:
  struct Votes {
    size_t nodes = 0;
    std::map<int, size_t> at;
  };
  std::map<size_t, Votes> votes_;  // of nodes with at least so many cables
};

// Of all leaves. What is right is what most nodes of a kind have.
class LeafRails {
 public:
  LeafRails(const std::vector<NodeCables>& nodes, const LeafGroups& groups);

  const RailPlaces& Of(int group, int kind, size_t rail) const;
  // Of each group, the switches of the kind that most of its nodes are of.
  const std::vector<SwitchOfRail>& shown() const { return shown_; }
  // The group's own switches: of that kind, and those of other kinds that no other group has more
  // nodes at.
  const std::set<int>& Switches(int group) const { return switches_[static_cast<size_t>(group)]; }
  // Of each group, the kind that most of its nodes are of; -1: none of them is certain.
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
