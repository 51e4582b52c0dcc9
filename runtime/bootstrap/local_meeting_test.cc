// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/local_meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/meet_for_test.h"
#include "runtime/net/local_socket.h"
#include "runtime/testing/ranks.h"

namespace railhead::bootstrap {
namespace {

using railhead::testing::RunRanks;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Time In(double seconds) { return MonotonicNow() + absl::Seconds(seconds); }

JoinOptions Options(int rank, int world_size, const std::string& launch, double seconds = 60) {
  JoinOptions options;
  options.rank = rank;
  options.world_size = world_size;
  options.place = std::make_shared<LocalMeeting>(absl::StrCat(launch, " of ", ::getpid()), launch);
  options.job = "job";
  options.deadline = In(seconds);
  options.log = Logger(LogLevel::kError, "");
  return options;
}

// All jobs have the same name and the same world size; the ranks come in any order.
TEST(LocalMeetingTest, LaunchesOnOneHostNeverMix) {
  std::mt19937 random{20265};
  const auto below = [&random](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  for (int round = 0; round < 20; ++round) {
    const int launches = 2 + below(3);
    const int world = 2 + below(4);
    std::vector<int> delays;
    for (int i = 0; i < launches * world; ++i) delays.push_back(below(30));
    const std::vector<std::string> met = RunRanks(launches * world, [&](int number) {
      const int launch = number % launches;
      const int rank = number / launches;
      absl::SleepFor(absl::Milliseconds(delays[static_cast<size_t>(number)]));
      return Meet(Options(rank, world, absl::StrCat("round ", round, " launch ", launch)),
                  absl::StrCat(launch, ".", rank));
    });
    for (int number = 0; number < launches * world; ++number) {
      std::vector<std::string> expected;
      for (int rank = 0; rank < world; ++rank) {
        expected.push_back(absl::StrCat(number % launches, ".", rank));
      }
      EXPECT_EQ(met[static_cast<size_t>(number)], absl::StrJoin(expected, " ")) << round;
    }
  }
}

TEST(LocalMeetingTest, TheSameLaunchMayMeetAgain) {
  for (int i = 0; i < 3; ++i) {
    for (const std::string& met :
         RunRanks(2, [](int rank) { return Meet(Options(rank, 2, "again"), "x"); })) {
      EXPECT_EQ(met, "x x");
    }
  }
}

TEST(LocalMeetingTest, TwoProcessesOfRankZeroAreNamed) {
  const std::vector<std::string> errors =
      RunRanks(2, [](int) { return Meet(Options(0, 2, "twice"), ""); });
  EXPECT_THAT(errors, ::testing::Contains(AllOf(HasSubstr("another process is rank 0 of twice"),
                                                HasSubstr("two processes have RANK=0"))));
  EXPECT_THAT(errors, ::testing::Each(HasSubstr("two processes have RANK=0")));
}

TEST(LocalMeetingTest, AMissingRankZeroIsReported) {
  EXPECT_THAT(Meet(Options(1, 2, "alone", 0.3), ""),
              AllOf(HasSubstr("rank 1 could not join the rendezvous at the local socket of alone"),
                    HasSubstr("rank 0 is not there yet")));
}

}  // namespace
}  // namespace railhead::bootstrap
