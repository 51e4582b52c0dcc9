// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operator/gangs/planner.h"
#include "operator/gangs/testing/small_cluster.h"

namespace railhead::op::gangs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::SmallCluster;

constexpr char kGkePool[] = "cloud.google.com/gke-nodepool";

// Two nodes in a pool, and a gang of so many pods that take a whole one each.
std::string ToldTo(int pods, const std::string& pool, int hcas = 8,
                   const std::string& require_level = "") {
  SmallCluster cluster;
  for (const char* const name : {"n0", "n1"}) {
    cluster.AddNode(name, "s", "l");
    if (!pool.empty()) cluster.nodes[name]["metadata"]["labels"][kGkePool] = pool;
  }
  for (int i = 0; i < pods; ++i) {
    cluster.AddPod({.name = absl::StrCat("g-", i),
                    .gang = "g",
                    .size = pods,
                    .hcas = hcas,
                    .require_level = require_level});
  }
  const std::vector<Decision> decisions = cluster.Decide();
  EXPECT_EQ(decisions[0].state, Decision::State::kWaiting);
  return decisions[0].message;
}

TEST(Pools, AGangThatWaitsIsToldHowMuchAPoolWouldHaveToGrow) {
  EXPECT_THAT(ToldTo(5, "a3"), HasSubstr("autoscalers do not see gated pods: if the pool "
                                         "cloud.google.com/gke-nodepool=a3 can grow, scale it up "
                                         "by 3 nodes"));
  EXPECT_THAT(ToldTo(6, "a3", 4), HasSubstr("scale it up by 1 node"));
  EXPECT_THAT(ToldTo(5, "a3", 8, "leaf"), HasSubstr("scale it up by 3 nodes"));
}

TEST(Pools, WhatHelpsIsToldBeforeWhatIsInTheWayAndMayBeCut) {
  const std::string told = ToldTo(3, "", 16);
  EXPECT_LT(told.find("autoscalers"), told.find("excluded"));
  EXPECT_THAT(told, HasSubstr("railhead.io/gang-timeout-policy: release"));
}

TEST(Pools, WhereNobodyNamesPoolsNothingIsSaidOfThem) {
  EXPECT_THAT(ToldTo(5, ""), Not(HasSubstr("autoscalers")));
}

TEST(Pools, WhatNoNodeTakesMayBeForAPoolThatHasNone) {
  EXPECT_THAT(ToldTo(1, "", 16), HasSubstr("a pool has larger nodes, or no nodes now"));
}

TEST(Pools, OfSeveralTheOneWithTheRoomiestNodesIsNamed) {
  NodeTree tree;
  for (const Labels& labels : {Labels{{"karpenter.sh/nodepool", "small"}},
                               Labels{{"eks.amazonaws.com/nodegroup", "p5"}}, Labels{}}) {
    auto node = std::make_shared<StoredNode>();
    node->labels = labels;
    tree.nodes.push_back(std::move(node));
  }
  EXPECT_THAT(AboutPools(tree, {{0, 1}, {0, 4}, {0, 8}}, 9),
              HasSubstr("eks.amazonaws.com/nodegroup=p5 can grow, scale it up by 3 nodes"));
  EXPECT_THAT(AboutPools(tree, {{0, 1}, {0, 0}, {0, 8}}, 2), HasSubstr("nodepool=small"));
  EXPECT_EQ(AboutPools(tree, {{0, 0}, {0, 0}, {0, 8}}, 2), "");
}

}  // namespace
}  // namespace railhead::op::gangs
