// SPDX-License-Identifier: Apache-2.0
//
// Changes of the wall clock while ranks wait for each other must neither end nor extend a wait.
// This program has its own wall clock, which the tests set; the machine's does not change.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/base/condition.h"
#include "runtime/base/now.h"
#include "runtime/testing/ranks.h"

namespace railhead {
namespace {

// Difference between this program's wall clock and the machine's.
std::atomic<int64_t>& Ahead() {
  static std::atomic<int64_t> seconds = 0;
  return seconds;
}

class WallClockTest : public ::testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  void SetUp() override {
    ::setenv("RAILHEAD_SOCKET_IFNAME", "lo", 1);
    ::setenv("RAILHEAD_METRICS_PORT", "0", 1);
    ::setenv("RAILHEAD_RAILS_FILE", "/nonexistent/rails.json", 1);
    ::setenv("RAILHEAD_TIMEOUT_SECONDS", "20", 1);
    ::setenv("RAILHEAD_LOG", "error", 1);
    ::setenv("RAILHEAD_TRANSPORT", std::get<0>(GetParam()), 1);
  }
  void TearDown() override { Ahead() = 0; }

  static void Step() { Ahead() += std::get<1>(GetParam()); }
};

TEST_P(WallClockTest, RanksThatWaitForEachOtherGoOnWaiting) {
  rhUniqueId id;
  ASSERT_EQ(rhGetUniqueId(&id), rhSuccess) << rhGetLastError(nullptr);
  const auto moment = absl::Milliseconds(300);
  testing::RunRanks(2, [&](int rank) {
    // Rank 1 waits for rank 0 at the start, and rank 0 for rank 1 in the collective.
    if (rank == 0) {
      absl::SleepFor(moment);
      Step();
      absl::SleepFor(moment);
    }
    rhComm_t comm = nullptr;
    EXPECT_EQ(rhCommInitRank(&comm, 2, id, rank), rhSuccess) << rhGetLastError(nullptr);
    if (comm == nullptr) return false;
    if (rank == 1) {
      absl::SleepFor(moment);
      Step();
      absl::SleepFor(moment);
    }
    float value = 1;
    EXPECT_EQ(rhAllReduce(&value, &value, 1, rhFloat32, rhSum, comm, nullptr), rhSuccess)
        << rhGetLastError(comm);
    EXPECT_EQ(value, 2);
    if (rank == 0) Step();
    EXPECT_EQ(rhCommDestroy(comm), rhSuccess);
    return true;
  });
}

std::string StepName(const ::testing::TestParamInfo<std::tuple<const char*, int>>& step) {
  const int seconds = std::get<1>(step.param);
  return std::string(std::get<0>(step.param)) + (seconds < 0 ? "Back" : "Ahead") +
         std::to_string(std::abs(seconds) / 3600) + "Hours";
}
INSTANTIATE_TEST_SUITE_P(Steps, WallClockTest,
                         ::testing::Combine(::testing::Values("tcp", "shm"),
                                            ::testing::Values(-3600, 3600, 86400)),
                         StepName);

// With the wall clock, a short wait during which it is set back would take an hour.
TEST(ConditionTest, AWaitEndsByItsDeadlineWhateverTheTimeOfDay) {
  std::mutex mutex;
  Condition condition;
  std::unique_lock<std::mutex> lock(mutex);
  bool stepped = false;
  EXPECT_FALSE(condition.WaitFor(lock, absl::Milliseconds(50), [&] {
    if (!std::exchange(stepped, true)) Ahead() -= 3600;
    return false;
  }));
  Ahead() = 0;
}

TEST(ConditionTest, AWaitEndsWhenItIsNotified) {
  std::mutex mutex;
  Condition condition;
  bool done = false;
  std::thread other([&] {
    const std::lock_guard<std::mutex> lock(mutex);
    done = true;
    condition.NotifyAll();
  });
  {
    std::unique_lock<std::mutex> lock(mutex);
    EXPECT_TRUE(condition.WaitUntil(lock, absl::InfiniteFuture(), [&] { return done; }));
  }
  other.join();
}

TEST(NowTest, TheTimeOfDayIsForPeople) {
  const absl::Time before = MonotonicNow();
  Ahead() += 3600;
  EXPECT_LT(MonotonicNow() - before, absl::Minutes(30));
  EXPECT_GT(TimeOfDay(before) - absl::Now(), -absl::Minutes(30));
  EXPECT_LE(TimeOfDay(before), absl::Now());
  Ahead() = 0;
}

}  // namespace
}  // namespace railhead

// Replaces the C library's.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = ::syscall(SYS_clock_gettime, clock, time);  // NOLINT(google-runtime-int)
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += railhead::Ahead();
  return static_cast<int>(result);
}
