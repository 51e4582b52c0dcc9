// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/net/socket.h"
#include "runtime/testing/ranks.h"

namespace railhead::bootstrap {
namespace {

using railhead::testing::FreePort;
using railhead::testing::RunRanks;
using ::testing::HasSubstr;

absl::Time In(double seconds) { return absl::Now() + absl::Seconds(seconds); }

// The watches of a world. Nobody goes on before all have begun: a rank that failed earlier would
// fail the others' Join.
class World {
 public:
  explicit World(int size) : size_(size), port_(FreePort()), all_(size) {}

  std::unique_ptr<Watch> Start(int rank) {
    std::unique_ptr<Watch> watch = StartAlone(rank);
    all_.arrive_and_wait();
    return watch;
  }

 private:
  std::unique_ptr<Watch> StartAlone(int rank) const;

  int size_;
  int port_;
  std::barrier<> all_;
};

std::unique_ptr<Watch> World::StartAlone(int rank) const {
  JoinOptions options;
  options.rank = rank;
  options.world_size = size_;
  options.host = "127.0.0.1";
  options.port = port_;
  options.name = absl::StrCat("pod p", rank);
  options.deadline = In(20);
  absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(std::move(options));
  EXPECT_TRUE(bootstrap.ok()) << bootstrap.status();
  return *Watch::Start(*std::move(bootstrap));
}

class WatchTest : public ::testing::TestWithParam<int> {};

TEST_P(WatchTest, WhoLeavesTogetherLeavesInPeace) {
  const int world = GetParam();
  World started(world);
  RunRanks(world, [&](int rank) {
    const std::unique_ptr<Watch> watch = started.Start(rank);
    const absl::Time deadline = In(20);
    watch->Goodbye(deadline);
    EXPECT_LT(absl::Now(), deadline);
    EXPECT_FALSE(watch->failed());
    EXPECT_TRUE(watch->verdict().ok());
    return true;
  });
}

TEST_P(WatchTest, ADeathIsKnownToAllOthers) {
  const int world = GetParam();
  for (int victim = 0; victim < world; ++victim) {
    World started(world);
    RunRanks(world, [&](int rank) {
      const std::unique_ptr<Watch> watch = started.Start(rank);
      if (rank == victim) return true;  // gone without a goodbye
      EXPECT_TRUE(net::WaitReadable(watch->event_fd(), In(20)).ok());
      EXPECT_TRUE(watch->failed());
      EXPECT_THAT(std::string(watch->verdict().message()),
                  HasSubstr(absl::StrCat("rank ", victim, " (pod p", victim, ") is gone")));
      return true;
    });
  }
}

TEST_P(WatchTest, AnAnnouncedFailureIsTheSameOnAll) {
  const int world = GetParam();
  for (int culprit = 0; culprit < world; ++culprit) {
    World started(world);
    const absl::Status failure =
        absl::InternalError(absl::StrCat("rank ", culprit, ": rail 1 is down"));
    RunRanks(world, [&](int rank) {
      const std::unique_ptr<Watch> watch = started.Start(rank);
      if (rank == culprit) {
        EXPECT_EQ(watch->Announce(failure), failure);
      } else {
        EXPECT_TRUE(net::WaitReadable(watch->event_fd(), In(20)).ok());
      }
      EXPECT_EQ(watch->verdict(), failure);
      return true;
    });
  }
}

TEST_P(WatchTest, ManyFailuresHaveOneVerdict) {
  const int world = GetParam();
  World started(world);
  const std::vector<absl::Status> verdicts = RunRanks(world, [&](int rank) {
    const std::unique_ptr<Watch> watch = started.Start(rank);
    return watch->Announce(absl::InternalError(absl::StrCat("rank ", rank, " failed")));
  });
  for (const absl::Status& verdict : verdicts) EXPECT_EQ(verdict, verdicts[0]);
}

INSTANTIATE_TEST_SUITE_P(Sizes, WatchTest, ::testing::Values(2, 3, 5, 24));

TEST(WatchAloneTest, AWorldOfOneLeavesAtOnce) {
  const std::unique_ptr<Watch> watch = World(1).Start(0);
  const absl::Time deadline = In(20);
  watch->Goodbye(deadline);
  EXPECT_LT(absl::Now(), deadline);
}

TEST(WatchAloneTest, GoodbyeEndsAtItsDeadlineWhereOthersStay) {
  World started(2);
  std::atomic<bool> left = false;
  RunRanks(2, [&](int rank) {
    const std::unique_ptr<Watch> watch = started.Start(rank);
    if (rank == 1) {
      watch->Goodbye(In(0.2));
      left = true;
    } else {
      while (!left) absl::SleepFor(absl::Milliseconds(5));
    }
    EXPECT_FALSE(watch->failed());  // leaving is not dying
    return true;
  });
}

}  // namespace
}  // namespace railhead::bootstrap
