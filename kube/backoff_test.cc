// SPDX-License-Identifier: Apache-2.0
#include "kube/backoff.h"

#include <gtest/gtest.h>

#include <set>

namespace railhead::kube {
namespace {

constexpr BackoffOptions kOptions = {absl::Seconds(1), absl::Seconds(30)};

TEST(BackoffTest, DoublesUpToTheLongestPause) {
  const double seconds[] = {1, 2, 4, 8, 16, 30, 30};
  for (int failures = 1; failures <= 7; ++failures) {
    const absl::Duration whole = absl::Seconds(seconds[failures - 1]);
    EXPECT_EQ(PauseAfter(kOptions, failures, 0), whole / 2) << failures;
    EXPECT_EQ(PauseAfter(kOptions, failures, 0.5), whole * 0.75) << failures;
  }
  EXPECT_EQ(PauseAfter(kOptions, 2'000'000'000, 0), absl::Seconds(15));
  EXPECT_EQ(PauseAfter({absl::Seconds(9), absl::Seconds(4)}, 1, 0), absl::Seconds(2));
}

TEST(BackoffTest, ATryThatLastedIsForgiven) {
  Backoff backoff(kOptions, [] { return 0.0; });
  EXPECT_EQ(backoff.After(absl::ZeroDuration()), absl::Seconds(0.5));
  EXPECT_EQ(backoff.After(absl::Seconds(29)), absl::Seconds(1));
  EXPECT_EQ(backoff.After(absl::ZeroDuration()), absl::Seconds(2));
  EXPECT_EQ(backoff.After(absl::Seconds(30)), absl::Seconds(0.5));
  EXPECT_EQ(backoff.After(absl::ZeroDuration()), absl::Seconds(1));
}

// What a server sees of a thousand clients whose every try ends at once: not more than two tries
// each in any longest pause, once they have slowed down.
TEST(BackoffTest, AStormIsBounded) {
  int tries = 0;
  const Random random = SystemRandom();
  for (int client = 0; client < 1000; ++client) {
    Backoff backoff(kOptions, random);
    absl::Duration at = absl::ZeroDuration();
    while (at < absl::Minutes(10)) {
      at += backoff.After(absl::ZeroDuration());
      if (at >= absl::Minutes(1)) ++tries;
    }
  }
  EXPECT_LE(tries, 1000 * 9 * 4 + 1000);
  EXPECT_GE(tries, 1000 * 9 * 2);
}

TEST(BackoffTest, SystemsRandomNumbersAreBelowOneAndDiffer) {
  const Random random = SystemRandom();
  std::set<double> seen;
  for (int i = 0; i < 1000; ++i) {
    const double number = random();
    EXPECT_GE(number, 0);
    EXPECT_LT(number, 1);
    seen.insert(number);
  }
  EXPECT_GT(seen.size(), 990U);
}

}  // namespace
}  // namespace railhead::kube
