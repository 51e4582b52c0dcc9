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

}  // namespace
}  // namespace railhead::fabric
