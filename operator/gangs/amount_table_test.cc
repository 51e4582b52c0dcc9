// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/amount_table.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

namespace railhead::op::gangs {
namespace {

// The most that anything in a cluster may be, as it is read (resources.cc).
constexpr int64_t kMost = 9'000'000'000'000'000;

AmountTable TwoNodes() {
  std::vector<NodeValue> nodes;
  for (const Resources& allocatable :
       {Resources{{"cpu", 96'000}, {"nvidia.com/gpu", 8'000}, {"rdma/hca", 8'000}},
        Resources{{"cpu", kMost}, {"pods", 110'000}}}) {
    auto node = std::make_shared<StoredNode>();
    node->allocatable = allocatable;
    nodes.push_back(std::move(node));
  }
  return AmountTable(nodes);
}

TEST(AmountTable, TheScarcestResourceCounts) {
  AmountTable table = TwoNodes();
  const Amounts pod = table.Read({{"cpu", 40'000}, {"rdma/hca", 2'000}});
  EXPECT_EQ(table.Fits(0, pod), 2);
  EXPECT_EQ(table.Fits(1, pod), 0);
  table.Add(0, table.Read({{"rdma/hca", 5'000}, {"nvidia.com/gpu", 8'000}}));
  EXPECT_EQ(table.Fits(0, pod), 1);
  EXPECT_EQ(table.HcasInUse(0), 5);
  EXPECT_EQ(table.FreeHcas(0), 3);
  EXPECT_EQ(table.FreeGpus(0), 0);
}

TEST(AmountTable, WhatNoNodeHasFitsNowhereAndIsInUseAllTheSame) {
  AmountTable table = TwoNodes();
  const Amounts pod = table.Read({{"cpu", 1}, {"rdma/other", 3'000}});
  EXPECT_EQ(table.Fits(0, pod), 0);
  table.Add(0, pod);
  EXPECT_EQ(table.HcasInUse(0), 3);
  EXPECT_EQ(table.FreeHcas(0), 8);
  table.Remove(0, pod);
  EXPECT_EQ(table.HcasInUse(0), 0);
}

TEST(AmountTable, MoreThanThereIsCanBeAddedAndTakenAwayAgain) {
  AmountTable table = TwoNodes();
  const Amounts huge = table.Read({{"cpu", kMost}});
  const Amounts small = table.Read({{"cpu", 1'000}});
  for (int i = 0; i < 5'000; ++i) table.Add(1, huge);
  EXPECT_EQ(table.Fits(1, small), 0);
  for (int i = 0; i < 5'000; ++i) table.Remove(1, huge);
  EXPECT_EQ(table.Fits(1, huge), 1);
  EXPECT_EQ(table.Fits(0, small), 96);
}

TEST(AmountTable, ANodeMayHaveOtherAmountsButNoOtherResources) {
  AmountTable table = TwoNodes();
  table.Add(0, table.Read({{"rdma/hca", 2'000}}));
  EXPECT_TRUE(table.SetAllocatable(0, {{"rdma/hca", 4'000}}));
  EXPECT_EQ(table.Fits(0, table.Read({{"rdma/hca", 1'000}})), 2);
  EXPECT_EQ(table.Fits(0, table.Read({{"cpu", 1}})), 0);
  EXPECT_FALSE(table.SetAllocatable(0, {{"rdma/other", 4'000}}));
  EXPECT_EQ(table.FreeHcas(0), 2);
}

TEST(AmountTable, WhoAsksForNothingFitsAnyNumberOfTimes) {
  const AmountTable table = TwoNodes();
  EXPECT_EQ(table.Fits(0, table.Read({{"cpu", 0}})), std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace railhead::op::gangs
