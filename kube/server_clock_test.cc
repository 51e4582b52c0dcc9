// SPDX-License-Identifier: Apache-2.0
#include "kube/server_clock.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/time/time.h"

namespace railhead::kube {
namespace {

class ServerClockTest : public ::testing::Test {
 protected:
  // A response that took `lasted`, from a server whose clock is `ahead` of the right one.
  void Respond(absl::Duration ahead, absl::Duration lasted = absl::Milliseconds(20)) {
    const absl::Time sent = monotonic_;
    monotonic_ += lasted / 2;
    const absl::Time shown = Right() + ahead;
    monotonic_ += lasted / 2;
    clock_.Hear(absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", shown, absl::UTCTimeZone()), sent);
  }
  absl::Time Right() const { return right_ + (monotonic_ - absl::UnixEpoch()); }
  absl::Duration Error() const { return absl::AbsDuration(clock_.Now() - Right()); }

  const absl::Time right_ = absl::FromUnixSeconds(1800000000) + absl::Milliseconds(700);
  absl::Time monotonic_ = absl::UnixEpoch();
  // This machine's time of day is wrong by a day when the process starts.
  ServerClock clock_{[this] { return monotonic_; }, [this] { return right_ + absl::Hours(24); }};
};

TEST_F(ServerClockTest, IsTheTimeOfDayUntilTheServerIsHeardAndThenTheServers) {
  monotonic_ += absl::Seconds(5);
  EXPECT_EQ(clock_.Now(), Right() + absl::Hours(24));
  clock_.Hear("Friday the 13th", monotonic_);
  clock_.Hear("", monotonic_);
  EXPECT_EQ(clock_.Now(), Right() + absl::Hours(24));
  Respond(absl::ZeroDuration());
  EXPECT_LE(Error(), absl::Milliseconds(1020));
  monotonic_ += absl::Hours(1);
  EXPECT_LE(Error(), absl::Milliseconds(1020));
  for (int i = 0; i < 20; ++i) {
    monotonic_ += absl::Milliseconds(100);
    Respond(absl::ZeroDuration());
  }
  EXPECT_LE(Error(), absl::Milliseconds(150));  // the second ends between two responses
  // A slow one says little, and spoils nothing.
  Respond(absl::ZeroDuration(), absl::Seconds(5));
  EXPECT_LE(Error(), absl::Milliseconds(150));
}

TEST_F(ServerClockTest, FollowsAServerWhoseClockIsSetWhenThatHasLasted) {
  Respond(absl::ZeroDuration());
  for (int i = 0; i < 59; ++i) {
    monotonic_ += absl::Seconds(1);
    Respond(absl::Hours(1));
    EXPECT_LE(Error(), absl::Seconds(2));
  }
  monotonic_ += absl::Seconds(2);
  Respond(absl::Hours(1));
  EXPECT_LE(absl::AbsDuration(clock_.Now() - Right() - absl::Hours(1)), absl::Seconds(2));
}

TEST_F(ServerClockTest, StaysWhereServersDisagree) {
  Respond(absl::ZeroDuration());
  for (int i = 0; i < 300; ++i) {
    monotonic_ += absl::Seconds(1);
    Respond(i % 7 == 0 ? absl::ZeroDuration() : -absl::Hours(1));
    EXPECT_LE(Error(), absl::Seconds(2));
  }
}

TEST_F(ServerClockTest, FollowsAClockThatDrifts) {
  Respond(absl::ZeroDuration());
  absl::Duration drift;
  for (int i = 0; i < 1000; ++i) {
    monotonic_ += absl::Seconds(10);
    drift += absl::Milliseconds(10);
    Respond(drift);
  }
  EXPECT_LE(absl::AbsDuration(clock_.Now() - Right() - drift), absl::Seconds(2));
}

}  // namespace
}  // namespace railhead::kube
