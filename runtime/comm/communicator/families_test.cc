// SPDX-License-Identifier: Apache-2.0
//
// Communicators created from others: split, without lost ranks, and with new ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/base/now.h"
#include "runtime/testing/forked_ranks.h"

namespace railhead {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
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
    // The old communicator still works.
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

// Ranks die one after the other, including rank 0; the remaining ranks continue.
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

// At the one address of a process.
TEST_P(FamiliesTest, TwoMeetAgainAtOnce) {
  const auto outputs = RunForks(4, GetParam(), [](rhComm_t comm, int rank) -> std::string {
    constexpr size_t kParts = 3;
    std::array<rhComm_t, kParts> parts = {};
    for (rhComm_t& part : parts) {
      if (rhCommSplit(comm, 0, 0, &part, nullptr) != rhSuccess) return rhGetLastError(comm);
    }
    std::array<std::string, kParts> texts;
    if (rank < 3) {
      std::vector<std::thread> meetings;
      for (size_t i = 0; i < kParts; ++i) {
        meetings.emplace_back([&part = parts[i], &text = texts[i], rank] {
          rhComm_t smaller = nullptr;
          const int excluded = 3;
          const rhResult_t met = rhCommShrink(part, &excluded, 1, &smaller, nullptr);
          text = met == rhSuccess ? Describe(smaller, 1 << rank) : rhGetLastError(part);
          rhCommDestroy(smaller);
        });
      }
      for (std::thread& meeting : meetings) meeting.join();
    }
    // Rank 3 stays until the others have met.
    const std::string text = absl::StrCat(Describe(comm, 1), "; ", absl::StrJoin(texts, ", "));
    for (rhComm_t part : parts) rhCommDestroy(part);
    return text;
  });
  EXPECT_EQ(outputs, (std::vector<std::string>{"0 of 4: 4; 0 of 3: 7, 0 of 3: 7, 0 of 3: 7",
                                               "1 of 4: 4; 1 of 3: 7, 1 of 3: 7, 1 of 3: 7",
                                               "2 of 4: 4; 2 of 3: 7, 2 of 3: 7, 2 of 3: 7",
                                               "3 of 4: 4; , , "}));
}

// As above, in the background: as many as a program of PyTorch has.
TEST_P(FamiliesTest, ManyMeetAgainAtOnce) {
  constexpr size_t kParts = 24;
  const auto outputs = RunForks(4, GetParam(), [](rhComm_t comm, int rank) -> std::string {
    std::array<rhComm_t, kParts> parts = {};
    for (rhComm_t& part : parts) {
      if (rhCommSplit(comm, 0, 0, &part, nullptr) != rhSuccess) return rhGetLastError(comm);
    }
    std::string texts;
    if (rank < 3) {
      std::array<rhComm_t, kParts> smaller = {};
      rhConfig_t config = RH_CONFIG_INITIALIZER;
      config.blocking = 0;
      const int excluded = 3;
      for (size_t i = 0; i < kParts; ++i) {
        // Rank 2 begins with the last.
        const size_t next = rank == 2 ? kParts - 1 - i : i;
        if (rhCommShrink(parts[next], &excluded, 1, &smaller[next], &config) != rhInProgress) {
          return rhGetLastError(parts[next]);
        }
      }
      for (rhComm_t made : smaller) {
        rhResult_t state = rhInProgress;
        while (state == rhInProgress) {
          absl::SleepFor(absl::Milliseconds(1));
          rhCommGetAsyncError(made, &state);
        }
        if (state != rhSuccess) return rhGetLastError(made);
      }
      for (rhComm_t made : smaller) {
        // Ranks that reach the wrong one are rejected, and try again.
        rhCommInfo_t info{};
        info.struct_size = sizeof info;
        rhCommGetInfo(made, &info);
        if (info.rejected_connections != 0) {
          absl::StrAppend(&texts, info.rejected_connections, " rejected; ");
        }
        const std::string text = Describe(made, 1 << rank);
        if (text != absl::StrCat(rank, " of 3: 7")) absl::StrAppend(&texts, text, "; ");
        rhCommDestroy(made);
      }
    }
    // Rank 3 stays until the others have met.
    absl::StrAppend(&texts, Describe(comm, 1));
    for (rhComm_t part : parts) rhCommDestroy(part);
    return texts;
  });
  EXPECT_EQ(outputs,
            (std::vector<std::string>{"0 of 4: 4", "1 of 4: 4", "2 of 4: 4", "3 of 4: 4"}));
}

// A rank may learn of another loss, and begin again without that rank, before its first rank does.
TEST_P(FamiliesTest, AMeetingWithoutMoreRanksWaitsForItsFirst) {
  const auto outputs = RunForks(4, GetParam(), [](rhComm_t comm, int rank) -> std::string {
    const std::array<int, 2> excluded = {3, 2};
    std::string text;
    if (rank < 2) {
      rhComm_t smaller = nullptr;
      if (rank == 0) {
        rhConfig_t config = RH_CONFIG_INITIALIZER;
        config.startTimeoutSeconds = 1;
        if (rhCommShrink(comm, excluded.data(), 1, &smaller, &config) == rhSuccess) return "met";
        text = absl::StrCat(rhGetLastError(comm), "; ");
      }
      if (rhCommShrink(comm, excluded.data(), 2, &smaller, nullptr) != rhSuccess) {
        return absl::StrCat(text, rhGetLastError(comm));
      }
      absl::StrAppend(&text, Describe(smaller, 1 << rank), "; ");
      rhCommDestroy(smaller);
    }
    // The others stay until these have met.
    return absl::StrCat(text, Describe(comm, 1));
  });
  EXPECT_THAT(outputs[0], AllOf(HasSubstr("ranks 1-2 of 3 did not arrive"),
                                HasSubstr("they make this communicator, too, of the same ranks"),
                                HasSubstr("; 0 of 2: 3; 0 of 4: 4")));
  EXPECT_EQ(outputs[1], "1 of 2: 3; 1 of 4: 4");
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
      absl::StrAppend(&text, "; ", process.Wait(MonotonicNow() + absl::Seconds(60)).output);
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

// Known failures must end a wait at once: otherwise ranks would wait for a minute, and be killed
// before.
constexpr double kSoon = 50;

TEST_P(FamiliesTest, ADeathEndsTheMeetingOfThoseThatAreLeft) {
  for (const bool failed_before : {false, true}) {
    const auto outputs = RunForks(
        5, GetParam(),
        [&](rhComm_t& comm, int rank) -> std::string {
          int sum = 0;
          const int give = 1;
          const auto reduce = [&] {
            return rhAllReduce(&give, &sum, 1, rhInt32, rhSum, comm, nullptr);
          };
          if (failed_before) {
            // All are connected when it is done on one.
            reduce();
            if (rank == 4) ::raise(SIGKILL);
            while (reduce() == rhSuccess) continue;
          }
          // Ranks wait for it without a cause until it is dead.
          if (rank == 3) {
            absl::SleepFor(absl::Milliseconds(300));
            ::raise(SIGKILL);
          }
          if (rank == 4) {
            absl::SleepFor(absl::Seconds(1));
            return "";
          }
          rhComm_t smaller = nullptr;
          const int excluded = 4;
          const rhResult_t result = rhCommShrink(comm, &excluded, 1, &smaller, nullptr);
          std::string text = result == rhSuccess ? "it came" : rhGetLastError(comm);
          rhCommAbort(std::exchange(comm, nullptr));
          return text;
        },
        kSoon);
    // Rank 1, its parent in the tree, aborts when it detects the death, and may be gone before
    // other ranks know of it.
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_THAT(outputs[static_cast<size_t>(rank)],
                  AnyOf(HasSubstr("rank 3 (pod p3) is gone"), HasSubstr("rank 1 (pod p1) is gone")))
          << failed_before;
    }
    EXPECT_THAT(outputs[1], HasSubstr("rank 3 (pod p3) is gone")) << failed_before;
  }
}

TEST_P(FamiliesTest, AnAbortEndsTheMeetingOfOnesOwnRank) {
  const auto outputs = RunForks(
      3, GetParam(),
      [](rhComm_t& comm, int rank) -> std::string {
        // No other rank comes.
        if (rank != 1) {
          int given = 0;
          while (rhAllReduce(&given, &given, 1, rhInt32, rhSum, comm, nullptr) == rhSuccess)
            continue;
          return rhGetLastError(comm);
        }
        rhResult_t result = rhSuccess;
        std::atomic<bool> begins = false;
        std::thread meeting([&result, &begins, comm] {
          rhComm_t smaller = nullptr;
          const int excluded = 2;
          begins = true;
          result = rhCommShrink(comm, &excluded, 1, &smaller, nullptr);
        });
        // An abort frees the handle, which must be in use by then.
        while (!begins) std::this_thread::yield();
        absl::SleepFor(absl::Milliseconds(300));
        rhCommAbort(std::exchange(comm, nullptr));
        meeting.join();
        return result == rhRemoteError ? "rank 1 (pod p1): rhCommAbort was called" : "no failure";
      },
      kSoon);
  for (const std::string& output : outputs) {
    EXPECT_THAT(output, HasSubstr("rank 1 (pod p1): rhCommAbort was called"));
  }
}

TEST_P(FamiliesTest, ADeathEndsTheMeetingWithNewRanks) {
  const auto outputs = RunForks(
      3, GetParam(),
      [](rhComm_t& comm, int rank) -> std::string {
        rhUniqueId id{};
        if (rank == 0) rhGetUniqueId(&id);
        if (rhBroadcast(&id, &id, sizeof id, rhUint8, 0, comm, nullptr) != rhSuccess) {
          return rhGetLastError(comm);
        }
        if (rank == 2) ::raise(SIGKILL);
        rhComm_t larger = nullptr;
        const rhResult_t result = rhCommGrow(comm, 4, id, -1, &larger, nullptr);
        std::string text = result == rhSuccess ? "they came" : rhGetLastError(comm);
        rhCommAbort(std::exchange(comm, nullptr));
        return text;
      },
      kSoon);
  // Rank 0, its parent in the tree, aborts when it detects the death, and may be gone before rank 1
  // knows of rank 2.
  EXPECT_THAT(outputs[0], HasSubstr("rank 2 (pod p2) is gone"));
  EXPECT_THAT(outputs[1],
              AnyOf(HasSubstr("rank 2 (pod p2) is gone"), HasSubstr("rank 0 (pod p0) is gone")));
}

// Like a garbage collector.
TEST_P(FamiliesTest, RanksMayDestroyInOrdersOfTheirOwn) {
  constexpr int kRanks = 3;
  const auto outputs = RunForks(
      kRanks, GetParam(),
      [](rhComm_t& comm, int rank) -> std::string {
        std::array<rhComm_t, 4> parts = {};
        for (rhComm_t& part : parts) {
          if (rhCommSplit(comm, 0, 0, &part, nullptr) != rhSuccess) return rhGetLastError(comm);
          if (Describe(part, 1) != absl::StrCat(rank, " of 3: 3")) return "wrong";
        }
        std::rotate(parts.begin(), parts.begin() + rank, parts.end());
        for (int i = 0; i < 4; ++i) {
          const size_t next = static_cast<size_t>(rank % 2 == 0 ? i : 3 - i);
          if (rhCommDestroy(parts[next]) != rhSuccess) return "not destroyed";
        }
        return Describe(comm, 1);
      },
      kSoon);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(outputs[static_cast<size_t>(rank)], absl::StrCat(rank, " of 3: 3"));
  }
}

// Those that destroy later cannot do it before: if each of these waited as long as an end may take,
// this would be over too late.
TEST_P(FamiliesTest, ADestroyDoesNotWaitForTheOthers) {
  constexpr int kRanks = 3;
  const auto outputs = RunForks(
      kRanks, GetParam(),
      [](rhComm_t& comm, int rank) -> std::string {
        std::array<rhComm_t, 8> parts = {};
        for (rhComm_t& part : parts) {
          if (rhCommSplit(comm, 0, 0, &part, nullptr) != rhSuccess) return rhGetLastError(comm);
          if (rhBarrier(part, nullptr) != rhSuccess) return rhGetLastError(part);
        }
        for (size_t i = 0; i < parts.size(); ++i) {
          const bool first = rank == static_cast<int>(i) % kRanks;
          if (first && rhCommDestroy(parts[i]) != rhSuccess) return "not destroyed";
          if (rhBarrier(comm, nullptr) != rhSuccess) return rhGetLastError(comm);
          if (!first && rhCommDestroy(parts[i]) != rhSuccess) return "not destroyed";
        }
        return "destroyed";
      },
      kSoon);
  EXPECT_EQ(outputs, std::vector<std::string>(kRanks, "destroyed"));
}

// Of ranks that destroy many in opposite orders, the first waits for each other one in vain: once,
// and not once for each communicator, which would take 6 s.
TEST_P(FamiliesTest, RanksMayDestroyManyInOppositeOrders) {
  constexpr int kParts = 120;
  constexpr absl::Duration kMost = absl::Seconds(3);
  const auto outputs = RunForks(2, GetParam(), [](rhComm_t& comm, int rank) -> std::string {
    std::vector<rhComm_t> parts(kParts);
    for (rhComm_t& part : parts) {
      if (rhCommSplit(comm, 0, 0, &part, nullptr) != rhSuccess) return rhGetLastError(comm);
    }
    if (rank == 1) std::reverse(parts.begin(), parts.end());
    if (rhBarrier(comm, nullptr) != rhSuccess) return rhGetLastError(comm);
    const absl::Time start = MonotonicNow();
    for (rhComm_t part : parts) {
      if (rhCommDestroy(part) != rhSuccess) return "not destroyed";
    }
    const absl::Duration took = MonotonicNow() - start;
    return took < kMost ? "soon" : absl::StrCat("after ", absl::FormatDuration(took));
  });
  EXPECT_EQ(outputs, std::vector<std::string>(2, "soon"));
}

// Returns true if a failure of the communicator that names rank 2 becomes known.
bool LearnsOfTheDeath(rhComm_t comm) {
  const absl::Time deadline = MonotonicNow() + absl::Seconds(50);
  rhResult_t failure = rhSuccess;
  while (failure == rhSuccess && MonotonicNow() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
    rhCommGetAsyncError(comm, &failure);
  }
  return failure != rhSuccess &&
         std::string(rhGetLastError(comm)).find("rank 2 (pod p2) is gone") != std::string::npos;
}

// Their trees share connections by then, or are about to.
TEST_P(FamiliesTest, ADeathEndsAllOfThem) {
  for (const absl::Duration before : {absl::ZeroDuration(), absl::Milliseconds(300)}) {
    const auto outputs = RunForks(3, GetParam(), [before](rhComm_t& comm, int rank) -> std::string {
      std::vector<rhComm_t> all = {comm};
      for (int i = 0; i < 6; ++i) {
        // In three orders.
        if (rhCommSplit(comm, 0, (rank + i) % 3, &all.emplace_back(), nullptr) != rhSuccess) {
          return rhGetLastError(comm);
        }
      }
      // It may end with the death already.
      rhBarrier(comm, nullptr);
      if (rank == 2) {
        absl::SleepFor(before);
        ::raise(SIGKILL);
      }
      // Its rank in the first; in others it has other numbers.
      if (!LearnsOfTheDeath(comm)) return rhGetLastError(comm);
      const absl::Time deadline = MonotonicNow() + absl::Seconds(50);
      for (rhComm_t one : all) {
        rhResult_t failure = rhSuccess;
        while (failure == rhSuccess && MonotonicNow() < deadline) {
          absl::SleepFor(absl::Milliseconds(1));
          rhCommGetAsyncError(one, &failure);
        }
        if (failure == rhSuccess) return "not all have failed";
      }
      for (rhComm_t one : all) rhCommAbort(one);
      comm = nullptr;
      return "all have failed";
    });
    EXPECT_EQ(outputs[0], "all have failed");
    EXPECT_EQ(outputs[1], "all have failed");
  }
}

// It shares the connection with which the older one began.
TEST_P(FamiliesTest, OneOutlivesThoseBeforeIt) {
  const auto outputs = RunForks(3, GetParam(), [](rhComm_t& comm, int rank) -> std::string {
    for (int i = 0; i < 5; ++i) {
      rhComm_t next = nullptr;
      if (rhCommSplit(comm, 0, 0, &next, nullptr) != rhSuccess) return rhGetLastError(comm);
      if (i % 2 == 0) absl::SleepFor(absl::Milliseconds(50));
      if (rhCommDestroy(comm) != rhSuccess) return "not destroyed";
      comm = next;
      if (Describe(comm, 1) != absl::StrCat(rank, " of 3: 3")) return "wrong";
    }
    // It dies once the others have everything.
    char done = 0;
    if (rank == 2) {
      for (const int other : {0, 1}) rhRecv(&done, 1, rhUint8, other, comm, nullptr);
      ::raise(SIGKILL);
    }
    rhSend(&done, 1, rhUint8, 2, comm, nullptr);
    const bool learned = LearnsOfTheDeath(comm);
    rhCommAbort(comm);
    comm = nullptr;
    return learned ? "learned" : "not learned";
  });
  EXPECT_EQ(outputs[0], "learned");
  EXPECT_EQ(outputs[1], "learned");
}

INSTANTIATE_TEST_SUITE_P(Transports, FamiliesTest, ::testing::Values("tcp", "shm"));

}  // namespace
}  // namespace railhead
