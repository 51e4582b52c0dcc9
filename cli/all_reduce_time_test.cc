// SPDX-License-Identifier: Apache-2.0
#include "cli/all_reduce_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace railhead::cli {
namespace {

using ::testing::DoubleNear;

constexpr double kPicosecond = 1e-12;

AllReduceCase Case(int nodes, int gpus, double bytes) {
  return {.nodes = nodes,
          .gpus_per_node = gpus,
          .node_bytes_per_second = 100e9,
          .gpu_bytes_per_second = 400e9,
          .bytes = bytes};
}

double BestOfHosts(const AllReduceTimes& times) {
  return std::min(times.ring.seconds, times.tree->seconds);
}

// The formulas of the header, by hand: 4 nodes of 8 GPUs and 10 GB, where latency is small.
TEST(AllReduceTimeTest, LargeSizesTakeTheirBytes) {
  const AllReduceTimes times = EstimateAllReduce(Case(4, 8, 10e9));
  // 28 of 32 steps within a node at 3.4 us, and so on; 2 x 31/32 x 10 GB at 100 GB/s.
  EXPECT_THAT(times.ring.seconds,
              DoubleNear((8.4 + 56 * 3.4 + 6 * 14) * 1e-6 + 0.19375, kPicosecond));
  EXPECT_EQ(times.ring.protocol, "Simple");
  EXPECT_THAT(times.tree->seconds, DoubleNear((8.4 + 14 * 4 + 4 * 14) * 1e-6 + 0.2, kPicosecond));
  EXPECT_THAT(times.sharp->seconds, DoubleNear((2 * 3.7 + 0.8 * 7 + 31) * 1e-6 + 0.1, kPicosecond));
  EXPECT_EQ(times.sharp->protocol, "Simple");
}

TEST(AllReduceTimeTest, SmallSizesTakeTheirSteps) {
  const AllReduceTimes times = EstimateAllReduce(Case(4, 8, 0));
  EXPECT_THAT(times.ring.seconds, DoubleNear((6.6 + 56 * 1.0 + 6 * 2.7) * 1e-6, kPicosecond));
  EXPECT_EQ(times.ring.protocol, "LL");
  EXPECT_THAT(times.tree->seconds, DoubleNear((6.8 + 14 * 0.6 + 4 * 5) * 1e-6, kPicosecond));
  EXPECT_EQ(times.tree->protocol, "LL");
  // A GPU alone on its node adds nothing within it.
  EXPECT_THAT(EstimateAllReduce(Case(4, 1, 0)).sharp->seconds, DoubleNear(31e-6, kPicosecond));
}

TEST(AllReduceTimeTest, TwoNodesSendATreeOnce) {
  const double of_two = EstimateAllReduce(Case(2, 1, 10e9)).tree->seconds;
  const double of_three = EstimateAllReduce(Case(3, 1, 10e9)).tree->seconds;
  EXPECT_THAT(of_three - of_two, DoubleNear(0.1, kPicosecond));
}

TEST(AllReduceTimeTest, SlowGpusLimitAllAlgorithms) {
  AllReduceCase slow = Case(16, 8, 10e9);
  slow.gpu_bytes_per_second = 10e9;
  const AllReduceTimes times = EstimateAllReduce(slow);
  EXPECT_GT(times.ring.seconds, 2 * 127.0 / 128);
  EXPECT_GT(times.tree->seconds, 1.75);
  EXPECT_GT(times.sharp->seconds, 1.75);
  EXPECT_LT(times.sharp->seconds, 1.751);
}

TEST(AllReduceTimeTest, OneNodeDoesNotUseTheNetwork) {
  AllReduceCase one = Case(1, 8, 1e9);
  const AllReduceTimes times = EstimateAllReduce(one);
  EXPECT_FALSE(times.tree.has_value());
  EXPECT_FALSE(times.sharp.has_value());
  one.node_bytes_per_second = 1;
  EXPECT_EQ(EstimateAllReduce(one).ring.seconds, times.ring.seconds);
}

// SHARP is the fastest for that number of nodes and every larger one, and not for one less.
TEST(AllReduceTimeTest, SharpPaysFromTheNodesWhereItIsFastest) {
  for (const int gpus : {1, 3, 8}) {
    for (const double bytes : {8.0, 65536.0, 1e6, 3e6, 100e6, 10e9}) {
      const std::optional<int> from = SharpPaysFrom(Case(2, gpus, bytes));
      ASSERT_TRUE(from.has_value()) << gpus << " " << bytes;
      for (int nodes = 2; nodes <= 300; ++nodes) {
        const AllReduceTimes times = EstimateAllReduce(Case(nodes, gpus, bytes));
        if (nodes >= *from) {
          EXPECT_LT(times.sharp->seconds, BestOfHosts(times));
        } else if (nodes + 1 == *from) {
          EXPECT_GE(times.sharp->seconds, BestOfHosts(times));
        }
      }
    }
  }
  EXPECT_EQ(SharpPaysFrom(Case(2, 8, 10e9)), 2);
  // A tree of LL takes log2 N steps of 5 us there and back, SHARP 44 us at once.
  EXPECT_EQ(SharpPaysFrom(Case(2, 8, 8)), 8);
  EXPECT_EQ(SharpPaysFrom(Case(2, 1, 8)), 8);
}

}  // namespace
}  // namespace railhead::cli
