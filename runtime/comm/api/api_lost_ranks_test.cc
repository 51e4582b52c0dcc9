// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are killed, stand still, come late or leave early: the others name them, and wait
// for those that may.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/ranks_by_environment_for_test.h"
#include "runtime/net/fd.h"

namespace railhead {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

class DeathTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DeathTest, AKilledRankIsNamedByAllOthersLongBeforeTheTimeout) {
  for (const int world : {2, 4}) {
    for (int victim = 0; victim < world; ++victim) {
      const std::vector<std::string> outputs =
          RunForks(Environments(world, {{"RAILHEAD_TRANSPORT", GetParam()}}), [victim](int rank) {
            rhComm_t comm = nullptr;
            std::string error = Join(&comm);
            std::vector<float> values(262144);
            for (int i = 0; error.empty() && i < 1000000; ++i) {
              if (rank == victim && i == 5) ::raise(SIGKILL);
              error = Reduce(comm, values);
            }
            return error;
          });
      for (int rank = 0; rank < world; ++rank) {
        if (rank == victim) continue;
        EXPECT_THAT(outputs[static_cast<size_t>(rank)],
                    AllOf(HasSubstr(absl::StrCat("rank ", victim, " (pod p", victim, ")")),
                          HasSubstr("all_reduce number")))
            << "rank " << rank << " of " << world;
      }
    }
  }
}

// Like a data loader: a child that shares its parent's descriptors and outlives it.
TEST_P(DeathTest, AKilledRankIsNamedAlthoughItsChildLives) {
  constexpr int kWorld = 3;
  constexpr int kVictim = 1;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const net::Fd until_here(ends[0]);
  net::Fd here(ends[1]);
  const std::vector<std::string> outputs = RunForks(
      Environments(kWorld, {{"RAILHEAD_TRANSPORT", GetParam()}}),
      [&](int rank) {
        here.Reset();
        rhComm_t comm = nullptr;
        std::string error = Join(&comm);
        std::vector<float> values(1000);
        for (int i = 0; error.empty() && i < 1000000; ++i) {
          if (rank == kVictim && i == 5) {
            if (::fork() == 0) {
              // The test must not wait for output of the child.
              for (const int pipe : {STDOUT_FILENO, STDERR_FILENO}) ::close(pipe);
              char end = 0;
              [[maybe_unused]] const ssize_t got = ::read(until_here.get(), &end, 1);
              _exit(0);
            }
            ::raise(SIGKILL);
          }
          error = Reduce(comm, values);
        }
        return error;
      },
      kOutputs, kVictim);
  for (int rank = 0; rank < kWorld; ++rank) {
    if (rank == kVictim) continue;
    EXPECT_THAT(outputs[static_cast<size_t>(rank)],
                AllOf(HasSubstr("rank 1 (pod p1)"), HasSubstr("all_reduce number")))
        << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, DeathTest, ::testing::Values("tcp", "shm"));

// Stops this process, as a debugger does, until it is killed.
void Stop() { ::raise(SIGSTOP); }

// One hundred reductions of two ranks with a timeout of 4 s; before the sixth one, rank 1 calls
// `before_the_sixth`. `stopped`: who does not come back from it.
std::vector<std::string> Hundred(const std::string& transport, void (*before_the_sixth)(),
                                 int stopped = -1) {
  return RunForks(
      Environments(2, {{"RAILHEAD_TIMEOUT_SECONDS", "4"}, {"RAILHEAD_TRANSPORT", transport}}),
      [&](int rank) {
        rhComm_t comm = nullptr;
        std::string error = Join(&comm);
        std::vector<float> values(1000);
        for (int i = 0; error.empty() && i < 100; ++i) {
          if (rank == 1 && i == 5) before_the_sixth();
          error = Reduce(comm, values);
        }
        if (error.empty()) rhCommDestroy(comm);
        return error;
      },
      kOutputs, stopped);
}

TEST(ProcessesTest, ARankThatStandsStillIsNamed) {
  for (const char* transport : {"tcp", "shm"}) {
    EXPECT_THAT(Hundred(transport, Stop, 1)[0],
                AllOf(HasSubstr("rank 0 (pod p0): all_reduce number 5 (4000 bytes)"),
                      HasSubstr(" for 4s"), HasSubstr("rank 1 (pod p1) does not answer"),
                      HasSubstr("rank 0 (pod p0) is in number 5, all_reduce of 1000 values")));
  }
}

// For example while it writes a checkpoint.
TEST(ProcessesTest, ARankThatCallsLateIsWaitedFor) {
  for (const char* transport : {"tcp", "shm"}) {
    EXPECT_THAT(Hundred(transport, [] { absl::SleepFor(absl::Seconds(9)); }), Each(""));
  }
}

TEST(ProcessesTest, ARankThatLeavesEarlyIsNamed) {
  const std::vector<std::string> outputs = RunForks(Environments(3), [](int rank) {
    rhComm_t comm = nullptr;
    std::string error = Join(&comm);
    if (rank == 2 || !error.empty()) return error;  // exits without leaving
    std::vector<float> values(1000);
    return Reduce(comm, values);
  });
  EXPECT_THAT(outputs[0], HasSubstr("rank 2 (pod p2)"));
  EXPECT_THAT(outputs[1], HasSubstr("rank 2 (pod p2)"));
}

}  // namespace
}  // namespace railhead
