// SPDX-License-Identifier: Apache-2.0
//
// Communicators made of others: split, without lost ranks, and with new ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/testing/forked_ranks.h"

namespace railhead {
namespace {

using ::testing::HasSubstr;
using testing::Process;
using testing::RunForks;

// "rank of count: sum of what the ranks give".
std::string Describe(rhComm_t comm, int give) {
  int rank = -1;
  int count = -1;
  int sum = 0;
  rhCommUserRank(comm, &rank);
  rhCommCount(comm, &count);
  if (rhAllReduce(&give, &sum, 1, rhInt32, rhSum, comm, nullptr) != rhSuccess) {
    return rhGetLastError(comm);
  }
  return absl::StrCat(rank, " of ", count, ": ", sum);
}

class FamiliesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(FamiliesTest, SplitByColourInTheOrderOfKeys) {
  const auto outputs = RunForks(6, GetParam(), [](rhComm_t comm, int rank) -> std::string {
    rhComm_t part = nullptr;
    // Rank 5 is in no group; the others are in two, in reverse order.
    const int color = rank == 5 ? RH_SPLIT_NOCOLOR : rank % 2;
    if (rhCommSplit(comm, color, -rank, &part, nullptr) != rhSuccess) return rhGetLastError(comm);
    std::string text = part == nullptr ? "none" : Describe(part, 1 << rank);
    rhCommDestroy(part);
    // The old one works on.
    return absl::StrCat(text, "; ", Describe(comm, 1));
  });
  EXPECT_EQ(outputs, (std::vector<std::string>{"2 of 3: 21; 0 of 6: 6", "1 of 2: 10; 1 of 6: 6",
                                               "1 of 3: 21; 2 of 6: 6", "0 of 2: 10; 3 of 6: 6",
                                               "0 of 3: 21; 4 of 6: 6", "none; 5 of 6: 6"}));
}

TEST_P(FamiliesTest, BothWorkSideBySide) {
  const auto outputs = RunForks(4, GetParam(), [](rhComm_t comm, int rank) -> std::string {
    rhComm_t row = nullptr;
    rhComm_t column = nullptr;
    if (rhCommSplit(comm, rank / 2, 0, &row, nullptr) != rhSuccess) return rhGetLastError(comm);
    if (rhCommSplit(comm, rank % 2, 0, &column, nullptr) != rhSuccess) return rhGetLastError(comm);
    for (int i = 0; i < 100; ++i) {
      if (Describe(row, rank).empty() || Describe(column, rank).empty()) return "failed";
    }
    const std::string text = absl::StrCat(Describe(row, rank), ", ", Describe(column, rank));
    rhCommDestroy(row);
    rhCommDestroy(column);
    return text;
  });
  EXPECT_EQ(outputs, (std::vector<std::string>{"0 of 2: 1, 0 of 2: 2", "1 of 2: 1, 0 of 2: 4",
                                               "0 of 2: 5, 1 of 2: 2", "1 of 2: 5, 1 of 2: 4"}));
}

// Ranks die one after the other, the first one as well, and those that are left go on.
TEST_P(FamiliesTest, TrainingGoesOnWithoutLostRanks) {
  const auto outputs = RunForks(5, GetParam(), [](rhComm_t& comm, int rank) -> std::string {
    // By their old numbers.
    std::vector<int> members = {0, 1, 2, 3, 4};
    std::string sums;
    for (const int victim : {3, 0, 4}) {
      int rounds = 0;
      int sum = 0;
      const int give = 1 << rank;
      while (rhAllReduce(&give, &sum, 1, rhInt32, rhSum, comm, nullptr) == rhSuccess) {
        if (rank == victim && ++rounds == 3) ::raise(SIGKILL);
      }
      const auto lost = std::find(members.begin(), members.end(), victim);
      const int excluded = static_cast<int>(lost - members.begin());
      members.erase(lost);
      rhComm_t smaller = nullptr;
      if (rhCommShrink(comm, &excluded, 1, &smaller, nullptr) != rhSuccess) {
        return rhGetLastError(comm);
      }
      rhCommAbort(comm);
      comm = smaller;
      absl::StrAppend(&sums, Describe(comm, give), "; ");
    }
    return sums;
  });
  EXPECT_EQ(outputs[1], "1 of 4: 23; 0 of 3: 22; 0 of 2: 6; ");
  EXPECT_EQ(outputs[2], "2 of 4: 23; 1 of 3: 22; 1 of 2: 6; ");
}

TEST_P(FamiliesTest, NewRanksJoin) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "ThreadSanitizer ends a process that starts threads after a fork of one with threads";
#endif
  const auto outputs = RunForks(2, GetParam(), [](rhComm_t comm, int rank) -> std::string {
    // The id reaches new ranks by the fork, and the old ones over the old communicator.
    rhUniqueId id{};
    std::vector<Process> joined;
    if (rank == 0) {
      if (rhGetUniqueId(&id) != rhSuccess) return rhGetLastError(nullptr);
      for (int r = 2; r < 4; ++r) {
        joined.push_back(Process::Fork({}, [&] {
          rhComm_t larger = nullptr;
          if (rhCommGrow(nullptr, 4, id, r, &larger, nullptr) != rhSuccess) {
            return std::string(rhGetLastError(nullptr));
          }
          std::string text = Describe(larger, 1 << r);
          rhCommDestroy(larger);
          return text;
        }));
      }
    }
    if (rhBroadcast(&id, &id, sizeof id, rhUint8, 0, comm, nullptr) != rhSuccess) {
      return rhGetLastError(comm);
    }
    rhComm_t larger = nullptr;
    if (rhCommGrow(comm, 4, id, -1, &larger, nullptr) != rhSuccess) return rhGetLastError(nullptr);
    std::string text = Describe(larger, 1 << rank);
    rhCommDestroy(larger);
    for (Process& process : joined) {
      absl::StrAppend(&text, "; ", process.Wait(absl::Now() + absl::Seconds(60)).output);
    }
    return text;
  });
  EXPECT_EQ(outputs,
            (std::vector<std::string>{"0 of 4: 15; 2 of 4: 15; 3 of 4: 15", "1 of 4: 15"}));
}

TEST_P(FamiliesTest, WrongArgumentsAreRefused) {
  const auto outputs = RunForks(2, GetParam(), [](rhComm_t comm, int rank) -> std::string {
    rhComm_t made = nullptr;
    std::string texts;
    const auto note = [&](rhResult_t result) {
      absl::StrAppend(&texts, result == rhInvalidArgument ? rhGetLastError(comm) : "accepted",
                      "\n");
    };
    note(rhCommSplit(comm, -2, 0, &made, nullptr));
    const std::array<int, 2> excluded = {1 - rank, 7};
    note(rhCommShrink(comm, excluded.data(), 2, &made, nullptr));
    note(rhCommShrink(comm, &rank, 1, &made, nullptr));
    note(rhCommGrow(comm, 1, {}, -1, &made, nullptr));
    return texts;
  });
  for (const std::string& output : outputs) {
    EXPECT_THAT(output, HasSubstr("rhCommSplit: color -2 is negative"));
    EXPECT_THAT(output, HasSubstr("rhCommShrink: exclude_ranks: 7 does not exist; ranks go from"));
    EXPECT_THAT(output, HasSubstr("rhCommShrink: this rank is among exclude_ranks"));
    EXPECT_THAT(output,
                HasSubstr("rhCommGrow: rank -1 of 1; a rank of a communicator of 2 passes"));
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, FamiliesTest, ::testing::Values("tcp", "shm"));

}  // namespace
}  // namespace railhead
