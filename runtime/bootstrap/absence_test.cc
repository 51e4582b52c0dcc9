// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/absence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace railhead::bootstrap {
namespace {

const absl::Time kStart = absl::UnixEpoch();
constexpr absl::Time kNever = absl::InfinitePast();
constexpr SilenceLimits kLimits;

TEST(AbsenceTest, WhoIsSilentOnAllPathsIsGoneAtTheLimitAndNotBefore) {
  // The socket was last heard of 16 s before it was found to be lost; the rails at any time.
  for (int sign = -40; sign < 40; sign += 3) {
    Absence absence(kLimits, kStart, kStart - absl::Seconds(16));
    const absl::Time last = kStart + absl::Seconds(sign);
    const absl::Time end = std::max(last, kStart - absl::Seconds(16)) + kLimits.gone;
    for (absl::Time now = kStart; now < end + absl::Seconds(2); now += absl::Milliseconds(100)) {
      if (now >= absence.next()) absence.Failed(now);
      EXPECT_EQ(absence.Gone(now, std::min(now, last)), now >= end) << sign << " at " << now;
      if (now >= end) break;
    }
  }
}

TEST(AbsenceTest, WhoGivesSignsIsNotGoneHoweverLong) {
  Absence absence(kLimits, kStart, kStart - absl::Seconds(16));
  for (int tick = 0; tick < 100'000; ++tick) {
    const absl::Time now = kStart + tick * absl::Milliseconds(200);
    absence.Failed(now);
    // Now and then one is late.
    const int seconds = tick / 50 % 2 == 0 ? 1 : tick / 5 % 10;
    ASSERT_FALSE(absence.Gone(now, now - absl::Seconds(seconds)));
  }
}

// The machine was frozen, or the process stopped, before the loss was noticed or after it.
TEST(AbsenceTest, TimeInWhichNothingRanDoesNotCount) {
  for (const bool refuses : {false, true}) {
    Absence absence(kLimits, kStart, kStart - absl::Hours(1));
    EXPECT_FALSE(absence.Gone(kStart, kNever));
    absl::Time now = kStart + absl::Hours(1);
    const absl::Time sign = now - absl::Minutes(1);
    EXPECT_FALSE(absence.Gone(now, sign));
    if (refuses) absence.Refused(now);
    now += absl::Hours(1);
    EXPECT_FALSE(absence.Gone(now, sign));
    // From here on it runs.
    const absl::Time end = now + kLimits.gone;
    while (now < end && !absence.Gone(now, sign)) now += absl::Milliseconds(200);
    EXPECT_EQ(now < kStart + absl::Hours(2) + 2 * kLimits.refused, refuses);
    EXPECT_LT(now, end);
  }
}

TEST(AbsenceTest, WhoseAddressRefusesIsGoneSoonWithoutRails) {
  Absence absence(kLimits, kStart, kStart);
  EXPECT_FALSE(absence.Gone(kStart, kNever));
  absence.Refused(kStart);
  EXPECT_FALSE(absence.Gone(kStart, kNever));
  EXPECT_TRUE(absence.Gone(kStart + kLimits.refused_without_rails, kNever));
}

// A firewall that is reloaded, before the rails have carried anything between the two.
TEST(AbsenceTest, AShortRefusalWithoutRailsIsNoEnd) {
  Absence absence(kLimits, kStart, kStart);
  absl::Time now = kStart;
  for (; now < kStart + kLimits.refused_without_rails - absl::Milliseconds(50);
       now += absl::Milliseconds(50)) {
    absence.Refused(now);
    ASSERT_FALSE(absence.Gone(now, kNever)) << now;
  }
  absence.Failed(now);
  EXPECT_FALSE(absence.Gone(now + kLimits.refused, kNever));
}

TEST(AbsenceTest, WhoseAddressRefusesIsGoneSoonIfTheRailsAreSilent) {
  Absence absence(kLimits, kStart, kStart);
  const absl::Time last = kStart - absl::Milliseconds(1);
  absence.Refused(kStart);
  EXPECT_FALSE(absence.Gone(kStart, last));
  EXPECT_FALSE(absence.Gone(kStart + kLimits.refused / 2, last));
  EXPECT_TRUE(absence.Gone(kStart + kLimits.refused, last));
}

// Another host has the address now; or a firewall refuses connections, and lets the rails pass.
TEST(AbsenceTest, RefusalsDoNotCountAgainstTheRails) {
  Absence absence(kLimits, kStart, kStart);
  for (int tick = 0; tick < 10'000; ++tick) {
    const absl::Time now = kStart + absl::Milliseconds(100) * tick;
    if (now >= absence.next()) absence.Refused(now);
    ASSERT_FALSE(absence.Gone(now, now - absl::Milliseconds(50))) << now;
  }
}

TEST(AbsenceTest, OnlyRefusalsInARowCount) {
  std::mt19937 random(1);
  Absence absence(kLimits, kStart, kStart);
  for (absl::Time now = kStart; now < kStart + kLimits.gone; now += kLimits.refused / 4) {
    // Most attempts have no answer at all.
    if (random() % 3 == 0) {
      absence.Refused(now);
    } else {
      absence.Failed(now);
    }
    absence.Failed(now);
    EXPECT_FALSE(absence.Gone(now, kStart));
  }
}

TEST(AbsenceTest, AttemptsBecomeRareButNotRarerThanTheLimit) {
  Absence absence(kLimits, kStart, kStart);
  EXPECT_EQ(absence.next(), kStart);
  absl::Time now = kStart;
  absl::Duration last = absl::ZeroDuration();
  for (int i = 0; i < 20; ++i) {
    absence.Failed(now);
    const absl::Duration pause = absence.next() - now;
    EXPECT_GE(pause, last);
    EXPECT_LE(pause, kLimits.pause);
    last = pause;
    now = absence.next();
  }
  EXPECT_EQ(last, kLimits.pause);
}

}  // namespace
}  // namespace railhead::bootstrap
