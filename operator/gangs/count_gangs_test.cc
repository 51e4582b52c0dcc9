// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/count_gangs.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace railhead::op::gangs {
namespace {

absl::Time AtSecond(int seconds) { return absl::FromUnixSeconds(1'700'000'000 + seconds); }

Decision DecisionOf(const std::string& name, Decision::State state, int created) {
  Decision decision;
  decision.gang.key = name;
  decision.gang.space = "team-" + name;
  decision.gang.name = name;
  decision.gang.created = AtSecond(created);
  decision.state = state;
  return decision;
}

TEST(CountGangsTest, TheOldestOfThoseThatWaitIsNamed) {
  const GangCounts counts = CountGangs({DecisionOf("young", Decision::State::kWaiting, 50),
                                        DecisionOf("old", Decision::State::kWaiting, 10),
                                        DecisionOf("wrong", Decision::State::kIncomplete, 0),
                                        DecisionOf("other", Decision::State::kWaiting, 30)},
                                       {}, {}, AtSecond(100));
  EXPECT_EQ(counts.waiting, 3U);
  EXPECT_EQ(counts.longest_wait, absl::Seconds(90));
  EXPECT_EQ(counts.longest_space, "team-old");
  EXPECT_EQ(counts.longest_name, "old");
}

TEST(CountGangsTest, WhatWasPlacedAndNotCarriedOutWaitsToo) {
  const std::vector<Decision> decisions = {DecisionOf("placed", Decision::State::kPlaced, 0)};
  EXPECT_EQ(CountGangs(decisions, {}, {}, AtSecond(5)).longest_name, "placed");
  EXPECT_EQ(CountGangs(decisions, {"placed"}, {}, AtSecond(5)).longest_name, "");
}

TEST(CountGangsTest, NoneIsNamedWhereNoneWaits) {
  const GangCounts before =
      CountGangs({DecisionOf("old", Decision::State::kWaiting, 0)}, {}, {}, AtSecond(9));
  EXPECT_EQ(before.longest_name, "old");
  const GangCounts counts = CountGangs({}, {}, before, AtSecond(10));
  EXPECT_EQ(counts.longest_name, "");
  EXPECT_EQ(counts.longest_wait, absl::ZeroDuration());
}

}  // namespace
}  // namespace railhead::op::gangs
