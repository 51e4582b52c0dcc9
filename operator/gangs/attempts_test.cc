// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/attempts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railhead::op::gangs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kFirstTry = absl::UnixEpoch();

TEST(Attempts, EachGangHasABackOffOfItsOwn) {
  Attempts attempts;
  EXPECT_TRUE(attempts.Due("a", kFirstTry));
  EXPECT_EQ(attempts.NextDue(), absl::InfiniteFuture());
  attempts.Failed("a", "no", kFirstTry);
  EXPECT_FALSE(attempts.Due("a", kFirstTry));
  EXPECT_TRUE(attempts.Due("b", kFirstTry));
  const absl::Duration first = attempts.NextDue() - kFirstTry;
  EXPECT_TRUE(attempts.Due("a", kFirstTry + first));
  attempts.Failed("a", "no", kFirstTry);
  EXPECT_EQ(attempts.NextDue() - kFirstTry, 2 * first);
  for (int i = 0; i < 20; ++i) attempts.Failed("a", "no", kFirstTry);
  EXPECT_LE(attempts.NextDue() - kFirstTry, absl::Seconds(30));
  attempts.Worked("a");
  EXPECT_TRUE(attempts.Due("a", kFirstTry));
}

TEST(Attempts, WhatIsDueAndNeedsNothingIsForgotten) {
  Attempts attempts;
  for (const char* gang : {"busy", "idle"}) attempts.Failed(gang, "no", kFirstTry);
  const absl::Time due = attempts.NextDue();
  attempts.ForgetIdle({"busy"}, kFirstTry);
  EXPECT_EQ(attempts.FailuresOf("idle"), 1) << "it waits for its turn";
  attempts.ForgetIdle({"busy"}, due + absl::Minutes(1));
  EXPECT_EQ(attempts.FailuresOf("idle"), 0);
  EXPECT_EQ(attempts.FailuresOf("busy"), 1);
  attempts.ForgetIdle({}, due + absl::Minutes(1));
  EXPECT_EQ(attempts.NextDue(), absl::InfiniteFuture());
}

TEST(Attempts, OneRefusalMayBeARaceAndIsNotTold) {
  Attempts attempts;
  attempts.Failed("a", "first", kFirstTry);
  EXPECT_EQ(attempts.WordsAbout("a"), "");
  attempts.Failed("a", "second", kFirstTry);
  EXPECT_EQ(attempts.WordsAbout("a"), "second");
  EXPECT_THAT(attempts.Failing(), IsEmpty());
  attempts.Failed("a", "third", kFirstTry);
  EXPECT_THAT(attempts.Failing(), ElementsAre("a"));
  attempts.KeepOnly({"b"});
  EXPECT_EQ(attempts.FailuresOf("a"), 0);
}

}  // namespace
}  // namespace railhead::op::gangs
