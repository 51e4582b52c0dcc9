// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/leaf_groups.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "fabric/discovery/leaf_rails.h"

namespace railhead::fabric {
namespace {

std::vector<NodeCables> Cables(const std::vector<SwitchOfRail>& nodes) {
  std::vector<NodeCables> cables;
  for (const SwitchOfRail& node : nodes) {
    cables.emplace_back();
    for (const int at : node) {
      cables.back().rails.push_back(at < 0 ? std::vector<int>() : std::vector<int>{at});
    }
  }
  return cables;
}

// A switch that all nodes have a NIC at makes neighbours of nobody; with each group compared with
// each, this takes minutes.
TEST(LeafGroups, ASwitchThatAllShareJoinsNoLeaves) {
  constexpr int kLeaves = 60'000;
  std::vector<SwitchOfRail> nodes;
  for (int leaf = 0; leaf < kLeaves; ++leaf) {
    nodes.push_back({kLeaves, leaf});
    nodes.push_back({kLeaves, leaf});
  }
  const LeafGroups found = GroupByLeaves(Cables(nodes));
  ASSERT_EQ(found.count, kLeaves);
  const LeafRails rails(Cables(nodes), found);
  for (int leaf = 0; leaf < kLeaves; ++leaf) {
    const auto node = static_cast<size_t>(2 * leaf);
    EXPECT_EQ(found.group_of_node[node], found.group_of_node[node + 1]);
    EXPECT_EQ(rails.shown()[static_cast<size_t>(found.group_of_node[node])], nodes[node]);
  }
}

// The switches that many share decide where they are most of a node's cables.
TEST(LeafGroups, WhoHasMostOfItsCablesInAGroupIsOfIt) {
  std::vector<SwitchOfRail> nodes;
  for (int group = 0; group < 4; ++group) {
    for (int i = 0; i < 3; ++i) nodes.push_back({9, 10 + group, 20 + group, 30 + group});
  }
  nodes.push_back({9, 12, 22, 31});
  nodes.push_back({9, -1, 21, -1});
  const LeafGroups found = GroupByLeaves(Cables(nodes));
  EXPECT_EQ(found.count, 4);
  EXPECT_EQ(found.group_of_node[12], found.group_of_node[6]);
  EXPECT_EQ(found.group_of_node[13], found.group_of_node[3]);
}

// The first node of a new leaf, with one cable at another: one of eight makes no neighbours, half
// do.
TEST(LeafGroups, OneNodeAloneIsALeafUnlessItIsHalfInAnother) {
  const SwitchOfRail old = {0, 1, 2, 3, 4, 5, 6, 7};
  LeafGroups found = GroupByLeaves(Cables({old, old, {10, 11, 12, 3, 14, 15, 16, 17}}));
  EXPECT_EQ(found.count, 2);
  EXPECT_NE(found.group_of_node[2], found.group_of_node[0]);
  found = GroupByLeaves(Cables({old, old, {0, 1, 2, 3, 14, 15, 16, 17}}));
  EXPECT_EQ(found.count, 1);
}

// Kinds are told by the number of cables.
LeafGroups OfKinds(const std::vector<SwitchOfRail>& nodes) {
  std::vector<NodeCables> cables = Cables(nodes);
  for (NodeCables& node : cables) node.kind = static_cast<int>(node.rails.size());
  return GroupByLeaves(cables);
}

// One switch that all nodes have a NIC at, and more storage servers than nodes of a leaf.
TEST(LeafGroups, AConvergedSwitchJoinsNoLeavesOfAnotherKind) {
  for (const SwitchOfRail& rails : {SwitchOfRail{0, 1, 2, 3}, SwitchOfRail{0}}) {
    std::vector<SwitchOfRail> nodes;
    for (int leaf = 0; leaf < 2; ++leaf) {
      SwitchOfRail node = {99};
      for (const int rail : rails) node.push_back(10 * leaf + rail);
      nodes.insert(nodes.end(), 8, node);
    }
    nodes.insert(nodes.end(), 20, {99});
    const LeafGroups found = OfKinds(nodes);
    EXPECT_EQ(found.count, 3);
    EXPECT_NE(found.group_of_node[0], found.group_of_node[8]);
    EXPECT_NE(found.group_of_node[0], found.group_of_node[16]);
    EXPECT_NE(found.group_of_node[8], found.group_of_node[16]);
  }
}

// Whichever kind has more nodes.
TEST(LeafGroups, KindsAreOneLeafWhereTheirSwitchesSayWhich) {
  for (const size_t small : {1U, 5U}) {
    std::vector<SwitchOfRail> nodes;
    for (int leaf = 0; leaf < 2; ++leaf) {
      nodes.insert(nodes.end(), 3, {99, 10 * leaf, 10 * leaf + 1, 10 * leaf + 2});
      nodes.insert(nodes.end(), small, {99, 10 * leaf + 1, 10 * leaf + 2});
    }
    const LeafGroups found = OfKinds(nodes);
    EXPECT_EQ(found.count, 2);
    EXPECT_EQ(found.group_of_node[0], found.group_of_node[3]);
    EXPECT_EQ(found.group_of_node.back(), found.group_of_node[3 + small]);
    EXPECT_NE(found.group_of_node[0], found.group_of_node.back());
  }
}

// A few servers with a cable at each of two leaves.
TEST(LeafGroups, WhoHasCablesAtTwoLeavesJoinsThemNot) {
  for (const size_t servers : {1U, 2U, 9U}) {
    std::vector<SwitchOfRail> nodes(5, {0});
    nodes.insert(nodes.end(), 5, {1});
    nodes.insert(nodes.end(), servers, {0, 1});
    const LeafGroups found = OfKinds(nodes);
    if (servers < 9) {
      EXPECT_NE(found.group_of_node[0], found.group_of_node[5]);
    } else {
      EXPECT_EQ(found.count, 1) << "most nodes say that the switches are one leaf";
    }
  }
}

}  // namespace
}  // namespace railhead::fabric
