// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuner/lesson.h"

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

constexpr uint64_t kLongestTrial = Lesson::kMostWays * Lesson::kTurn * Lesson::kRounds;

// One rank, whose ways take what `seconds` says.
class Alone {
 public:
  Alone(size_t ways, std::function<double(size_t way)> seconds)
      : lesson_(ways), seconds_(std::move(seconds)) {}

  size_t Call() {
    const size_t way = lesson_.way();
    if (lesson_.Record(seconds_(way))) lesson_.Agree(lesson_.times());
    return way;
  }
  void Call(uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) Call();
  }
  // Until the trial is over: by which ways.
  std::vector<size_t> Trial() {
    std::vector<size_t> ways;
    while (lesson_.trying()) ways.push_back(Call());
    return ways;
  }
  const Lesson& lesson() const { return lesson_; }

 private:
  Lesson lesson_;
  std::function<double(size_t way)> seconds_;
};

TEST(LessonTest, WaysTakeTurnsOfSeveralCalls) {
  Alone rank(2, [](size_t way) { return way == 0 ? 1.2 : 1.0; });
  std::vector<size_t> expected;
  for (size_t round = 0; round < Lesson::kRounds; ++round) {
    expected.insert(expected.end(), Lesson::kTurn, 0);
    expected.insert(expected.end(), Lesson::kTurn, 1);
  }
  EXPECT_EQ(rank.Trial(), expected);
  EXPECT_EQ(rank.lesson().best(), 1U);
  EXPECT_DOUBLE_EQ(rank.lesson().seconds(0), 1.2);
}

TEST(LessonTest, WhatIsSlowerThanTheOneInUseHasOneTurn) {
  Alone rank(3, [](size_t way) { return std::vector{1.0, 9.0, 0.8}[way]; });
  const std::vector<size_t> ways = rank.Trial();
  EXPECT_EQ(std::count(ways.begin(), ways.end(), 1), static_cast<int>(Lesson::kTurn));
  EXPECT_EQ(ways.size(), (1 + 2 * Lesson::kRounds) * Lesson::kTurn);
  EXPECT_EQ(rank.lesson().best(), 2U);
  Alone other(3, [](size_t way) { return std::vector{1.0, 9.0, 1.1}[way]; });
  EXPECT_EQ(other.Trial().size(), 3 * Lesson::kTurn);
  EXPECT_EQ(other.lesson().best(), 0U);
}

TEST(LessonTest, TheFirstCallOfATurnIsNotCounted) {
  size_t before = 7;
  Alone rank(2, [&](size_t way) {
    const bool first = way != before;
    before = way;
    return (way == 0 ? 1.0 : 0.8) + (first && way == 1 ? 100.0 : 0.0);
  });
  rank.Trial();
  EXPECT_EQ(rank.lesson().best(), 1U);
  EXPECT_DOUBLE_EQ(rank.lesson().seconds(1), 0.8);
}

// One that is a little faster by chance would make floats be summed in another order for nothing.
TEST(LessonTest, WhatIsHardlyFasterIsNotWorthAChange) {
  Alone rank(2, [](size_t way) { return way == 0 ? 1.0 : 0.95; });
  rank.Trial();
  EXPECT_EQ(rank.lesson().best(), 0U);
}

// One call of every three is.
TEST(LessonTest, DisturbedCallsDoNotMislead) {
  int call = 0;
  Alone rank(3, [&](size_t way) { return (way == 2 ? 1.0 : 1.4) + (call++ % 3 == 0 ? 50.0 : 0); });
  rank.Trial();
  EXPECT_EQ(rank.lesson().best(), 2U);
}

TEST(LessonTest, ItRestsLongerWhileItFindsTheSameAndFollowsTheNetwork) {
  std::vector<double> seconds = {1.0, 1.3};
  Alone rank(2, [&](size_t way) { return seconds[way]; });
  rank.Trial();
  uint64_t rest = Lesson::kShortestRest;
  for (int trial = 1; trial < 8; ++trial) {
    for (uint64_t i = 0; i < rest; ++i) {
      ASSERT_FALSE(rank.lesson().trying());
      ASSERT_EQ(rank.Call(), 0U);
    }
    EXPECT_EQ(rank.Trial().size(), 2 * Lesson::kTurn);
    rest = std::min(2 * rest, Lesson::kLongestRest);
  }
  // Something happens to what the way in use needs.
  seconds[0] = 4.0;
  rank.Call(rest);
  EXPECT_TRUE(rank.lesson().trying());
  rank.Trial();
  EXPECT_EQ(rank.lesson().best(), 1U);
  rank.Call(Lesson::kShortestRest);
  EXPECT_TRUE(rank.lesson().trying());
}

// Of a machine where the same takes up to thrice as long by chance.
TEST(LessonTest, NoiseSeldomMakesASlowerWayTheChoice) {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> noise(1, 3);
  int slower = 0;
  int faster = 0;
  for (int world = 0; world < 1000; ++world) {
    Alone one(2, [&](size_t way) { return (way == 1 ? 1.3 : 1.0) * noise(random); });
    one.Trial();
    slower += one.lesson().best() == 1 ? 1 : 0;
    Alone two(2, [&](size_t way) { return (way == 1 ? 0.6 : 1.0) * noise(random); });
    two.Trial();
    faster += two.lesson().best() == 1 ? 1 : 0;
  }
  EXPECT_LT(slower, 20);
  EXPECT_GT(faster, 500);
}

// Whatever times they see, and whatever of them is agreed on.
TEST(LessonTest, RanksAlwaysChooseAlike) {
  std::mt19937 random(1);
  std::exponential_distribution<double> seconds(1);
  for (int world = 0; world < 40; ++world) {
    const size_t ways = 2 + random() % 2;
    std::vector<Lesson> ranks(1 + random() % 9, Lesson(ways));
    for (int call = 0; call < 3000; ++call) {
      std::vector<size_t> chosen;
      std::vector<bool> asks;
      for (Lesson& rank : ranks) {
        chosen.push_back(rank.way());
        asks.push_back(rank.Record(seconds(random)));
      }
      ASSERT_THAT(chosen, Each(chosen[0])) << "call " << call;
      ASSERT_THAT(asks, Each(asks[0]));
      if (!asks[0]) continue;
      Lesson::Times agreed{};
      for (const Lesson& rank : ranks) {
        for (size_t i = 0; i < agreed.size(); ++i) {
          agreed[i] += rank.times()[i] / static_cast<double>(ranks.size());
        }
      }
      for (Lesson& rank : ranks) rank.Agree(agreed);
    }
    EXPECT_GE(ranks[0].trials(), 2U);
  }
}

// Of calls and of time: ten times as slow a way costs no more than a few dozen calls in all.
TEST(LessonTest, TryingIsAFewPercentOfAll) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> factor(1, 10);
  for (int world = 0; world < 200; ++world) {
    std::vector<double> seconds(Lesson::kMostWays);
    for (double& s : seconds) s = factor(random);
    Alone rank(seconds.size(), [&](size_t way) { return seconds[way]; });
    const double best = *std::min_element(seconds.begin(), seconds.end());
    EXPECT_LE(rank.Trial().size(), kLongestTrial);
    constexpr uint64_t kCalls = 100000;
    uint64_t trying = 0;
    double lost = 0;
    for (uint64_t i = 0; i < kCalls; ++i) {
      if (rank.lesson().trying()) ++trying;
      lost += seconds[rank.Call()] - best;
    }
    const double share = static_cast<double>(trying) / kCalls;
    EXPECT_LE(share, 0.005);
    EXPECT_LE(lost / (best * kCalls), 0.1 + 0.02);
  }
}

}  // namespace
}  // namespace railhead::tuner
