// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/attempts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railhead::op::gangs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kStart = absl::UnixEpoch();

TEST(Attempts, EachGangHasABackOffOfItsOwn) {
  Attempts attempts;
  EXPECT_TRUE(attempts.Due("a", kStart));
  EXPECT_EQ(attempts.NextDue(), absl::InfiniteFuture());
  attempts.Failed("a", "no", kStart);
  EXPECT_FALSE(attempts.Due("a", kStart));
  EXPECT_TRUE(attempts.Due("b", kStart));
  const absl::Duration first = attempts.NextDue() - kStart;
  EXPECT_TRUE(attempts.Due("a", kStart + first));
  attempts.Failed("a", "no", kStart);
  EXPECT_EQ(attempts.NextDue() - kStart, 2 * first);
  for (int i = 0; i < 20; ++i) attempts.Failed("a", "no", kStart);
  EXPECT_LE(attempts.NextDue() - kStart, absl::Seconds(30));
  attempts.Worked("a");
  EXPECT_TRUE(attempts.Due("a", kStart));
}

TEST(Attempts, OneRefusalMayBeARaceAndIsNotTold) {
  Attempts attempts;
  attempts.Failed("a", "first", kStart);
  EXPECT_EQ(attempts.WordsAbout("a"), "");
  attempts.Failed("a", "second", kStart);
  EXPECT_EQ(attempts.WordsAbout("a"), "second");
  EXPECT_THAT(attempts.Failing(), IsEmpty());
  attempts.Failed("a", "third", kStart);
  EXPECT_THAT(attempts.Failing(), ElementsAre("a"));
  attempts.KeepOnly({"b"});
  EXPECT_EQ(attempts.FailuresOf("a"), 0);
}

}  // namespace
}  // namespace railhead::op::gangs
