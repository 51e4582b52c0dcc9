// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/look_round.h"

#include "gtest/gtest.h"

namespace railhead::rails {
namespace {

constexpr absl::Duration kLongest = absl::Milliseconds(2);

TEST(LookRoundTest, LooksThroughWaitsThatRecur) {
  LookRound look(kLongest);
  EXPECT_EQ(look.length(), LookRound::kShortest);
  for (int i = 0; i < 100; ++i) {
    look.Waited(absl::Milliseconds(0.6));
    EXPECT_EQ(look.length(), absl::Milliseconds(1.2)) << "wait " << i;
    for (int own = 0; own < 3; ++own) look.Waited(absl::Microseconds(1));
    EXPECT_GT(look.length(), absl::Milliseconds(0.6)) << "wait " << i;
  }
}

TEST(LookRoundTest, IsNeverLongerThanAllowed) {
  LookRound look(kLongest);
  look.Waited(kLongest);
  EXPECT_EQ(look.length(), kLongest);
}

TEST(LookRoundTest, DoesNotLookThroughLongWaits) {
  LookRound look(kLongest);
  look.Waited(absl::Milliseconds(1));
  for (int i = 0; i < 40; ++i) look.Waited(absl::Milliseconds(60));
  EXPECT_EQ(look.length(), LookRound::kShortest);
  look.Waited(absl::Hours(1));
  EXPECT_EQ(look.length(), LookRound::kShortest);
}

TEST(LookRoundTest, StaysShortWhereItMust) {
  LookRound look(absl::ZeroDuration());
  look.Waited(absl::Microseconds(40));
  EXPECT_EQ(look.length(), LookRound::kShortest);
}

}  // namespace
}  // namespace railhead::rails
