// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuner/algorithm_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace railhead::tuner {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr uint64_t kLongestTrial =
    AlgorithmTrial::kMostWays * AlgorithmTrial::kTurn * AlgorithmTrial::kRounds;

// One rank, whose ways take what `seconds` says.
class Alone {
 public:
  Alone(size_t ways, std::function<double(size_t way)> seconds)
      : trial_(ways), seconds_(std::move(seconds)) {}

  size_t Call() {
    const size_t way = trial_.way();
    if (trial_.Record(seconds_(way))) trial_.Agree(trial_.times());
    return way;
  }
  void Call(uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) Call();
  }
  // Until the trial is over: by which ways.
  std::vector<size_t> Trial() {
    std::vector<size_t> ways;
    while (trial_.trying()) ways.push_back(Call());
    return ways;
  }
  const AlgorithmTrial& trial() const { return trial_; }

 private:
  AlgorithmTrial trial_;
  std::function<double(size_t way)> seconds_;
};

TEST(AlgorithmTrialTest, WaysTakeTurnsOfSeveralCalls) {
  Alone rank(2, [](size_t way) { return way == 0 ? 1.2 : 1.0; });
  std::vector<size_t> expected;
  for (size_t round = 0; round < AlgorithmTrial::kRounds; ++round) {
    expected.insert(expected.end(), AlgorithmTrial::kTurn, 0);
    expected.insert(expected.end(), AlgorithmTrial::kTurn, 1);
  }
  EXPECT_EQ(rank.Trial(), expected);
  EXPECT_EQ(rank.trial().best(), 1U);
  EXPECT_DOUBLE_EQ(rank.trial().seconds(0), 1.2);
}

TEST(AlgorithmTrialTest, WhatIsSlowerThanTheOneInUseHasOneTurn) {
  Alone rank(3, [](size_t way) { return std::vector{1.0, 9.0, 0.8}[way]; });
  const std::vector<size_t> ways = rank.Trial();
  EXPECT_EQ(std::count(ways.begin(), ways.end(), 1), static_cast<int>(AlgorithmTrial::kTurn));
  EXPECT_EQ(ways.size(), (1 + 2 * AlgorithmTrial::kRounds) * AlgorithmTrial::kTurn);
  EXPECT_EQ(rank.trial().best(), 2U);
  Alone other(3, [](size_t way) { return std::vector{1.0, 9.0, 1.1}[way]; });
  EXPECT_EQ(other.Trial().size(), 3 * AlgorithmTrial::kTurn);
  EXPECT_EQ(other.trial().best(), 0U);
}

TEST(AlgorithmTrialTest, TheFirstCallOfATurnIsNotCounted) {
  size_t before = 7;
  Alone rank(2, [&](size_t way) {
    const bool first = way != before;
    before = way;
    return (way == 0 ? 1.0 : 0.8) + (first && way == 1 ? 100.0 : 0.0);
  });
  rank.Trial();
  EXPECT_EQ(rank.trial().best(), 1U);
  EXPECT_DOUBLE_EQ(rank.trial().seconds(1), 0.8);
}

// One that is a little faster by chance would make floats be summed in another order for nothing.
TEST(AlgorithmTrialTest, WhatIsHardlyFasterIsNotWorthAChange) {
  Alone rank(2, [](size_t way) { return way == 0 ? 1.0 : 0.95; });
  rank.Trial();
  EXPECT_EQ(rank.trial().best(), 0U);
}

// One call of every three is.
TEST(AlgorithmTrialTest, DisturbedCallsDoNotMislead) {
  int call = 0;
  Alone rank(3, [&](size_t way) { return (way == 2 ? 1.0 : 1.4) + (call++ % 3 == 0 ? 50.0 : 0); });
  rank.Trial();
  EXPECT_EQ(rank.trial().best(), 2U);
}

TEST(AlgorithmTrialTest, ItRestsLongerWhileItFindsTheSameAndFollowsTheNetwork) {
  std::vector<double> seconds = {1.0, 1.3};
  Alone rank(2, [&](size_t way) { return seconds[way]; });
  rank.Trial();
  uint64_t rest = AlgorithmTrial::kShortestRest;
  for (int trial = 1; trial < 8; ++trial) {
    for (uint64_t i = 0; i < rest; ++i) {
      ASSERT_FALSE(rank.trial().trying());
      ASSERT_EQ(rank.Call(), 0U);
    }
    EXPECT_EQ(rank.Trial().size(), 2 * AlgorithmTrial::kTurn);
    rest = std::min(2 * rest, AlgorithmTrial::kLongestRest);
  }
  // Something happens to what the way in use needs.
  seconds[0] = 4.0;
  rank.Call(rest);
  EXPECT_TRUE(rank.trial().trying());
  rank.Trial();
  EXPECT_EQ(rank.trial().best(), 1U);
  rank.Call(AlgorithmTrial::kShortestRest);
  EXPECT_TRUE(rank.trial().trying());
}

// Of a machine where the same takes up to thrice as long by chance.
TEST(AlgorithmTrialTest, NoiseSeldomMakesASlowerWayTheChoice) {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> noise(1, 3);
  int slower = 0;
  int faster = 0;
  for (int world = 0; world < 1000; ++world) {
    Alone one(2, [&](size_t way) { return (way == 1 ? 1.3 : 1.0) * noise(random); });
    one.Trial();
    slower += one.trial().best() == 1 ? 1 : 0;
    Alone two(2, [&](size_t way) { return (way == 1 ? 0.6 : 1.0) * noise(random); });
    two.Trial();
    faster += two.trial().best() == 1 ? 1 : 0;
  }
  EXPECT_LT(slower, 20);
  EXPECT_GT(faster, 500);
}

// Whatever times they see, and whatever of them is agreed on.
TEST(AlgorithmTrialTest, RanksAlwaysChooseAlike) {
  std::mt19937 random(1);
  std::exponential_distribution<double> seconds(1);
  for (int world = 0; world < 40; ++world) {
    const size_t ways = 2 + random() % 2;
    std::vector<AlgorithmTrial> ranks(1 + random() % 9, AlgorithmTrial(ways));
    for (int call = 0; call < 3000; ++call) {
      std::vector<size_t> chosen;
      std::vector<bool> asks;
      for (AlgorithmTrial& rank : ranks) {
        chosen.push_back(rank.way());
        asks.push_back(rank.Record(seconds(random)));
      }
      ASSERT_THAT(chosen, Each(chosen[0])) << "call " << call;
      ASSERT_THAT(asks, Each(asks[0]));
      if (!asks[0]) continue;
      AlgorithmTrial::Times agreed{};
      for (const AlgorithmTrial& rank : ranks) {
        for (size_t i = 0; i < agreed.size(); ++i) {
          agreed[i] += rank.times()[i] / static_cast<double>(ranks.size());
        }
      }
      for (AlgorithmTrial& rank : ranks) rank.Agree(agreed);
    }
    EXPECT_GE(ranks[0].trials(), 2U);
  }
}

// Of calls and of time: ten times as slow a way costs no more than a few dozen calls in all.
TEST(AlgorithmTrialTest, TryingIsAFewPercentOfAll) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> factor(1, 10);
  for (int world = 0; world < 200; ++world) {
    std::vector<double> seconds(AlgorithmTrial::kMostWays);
    for (double& s : seconds) s = factor(random);
    Alone rank(seconds.size(), [&](size_t way) { return seconds[way]; });
    const double best = *std::min_element(seconds.begin(), seconds.end());
    EXPECT_LE(rank.Trial().size(), kLongestTrial);
    constexpr uint64_t kCalls = 100000;
    uint64_t trying = 0;
    double lost = 0;
    for (uint64_t i = 0; i < kCalls; ++i) {
      if (rank.trial().trying()) ++trying;
      lost += seconds[rank.Call()] - best;
    }
    const double share = static_cast<double>(trying) / kCalls;
    EXPECT_LE(share, 0.005);
    EXPECT_LE(lost / (best * kCalls), 0.1 + 0.02);
  }
}

}  // namespace
}  // namespace railhead::tuner
