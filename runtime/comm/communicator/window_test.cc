// SPDX-License-Identifier: Apache-2.0
//
// Windows of memory that ranks share with each other; ranks are processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/base/now.h"
#include "runtime/shm/segment_server.h"
#include "runtime/testing/forked_ranks.h"

namespace railhead {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RunForks;
using ::testing::StartsWith;

constexpr size_t kRoom = size_t{4} << 20U;  // bytes of a rank's memory

// Value of rank `rank` at index `i`, equal in all types.
uint32_t Value(int rank, size_t i) {
  return static_cast<uint32_t>(i * 2654435761U) + static_cast<uint32_t>(rank) * 40503U;
}

// Collectives of `count` values on memory from `send` and `receive` on, each room for all ranks'.
std::string TryAll(rhComm_t comm, int rank, int ranks, uint32_t* send, uint32_t* receive,
                   size_t count) {
  const auto all = static_cast<size_t>(ranks);
  const auto sum = [&](size_t i) {
    uint32_t result = 0;
    for (int r = 0; r < ranks; ++r) result += Value(r, i);
    return result;
  };
  const auto give = [&](size_t values) {
    for (size_t i = 0; i < values; ++i) send[i] = Value(rank, i);
    std::fill_n(receive, count * all, 0xabababab);
  };
  const auto wrong = [&](const char* what, size_t i) {
    return absl::StrCat(what, " of ", count, ": wrong at ", i, " (", rhGetLastError(comm), ")");
  };
  give(count);
  rhAllReduce(send, receive, count, rhUint32, rhSum, comm, nullptr);
  for (size_t i = 0; i < count; ++i) {
    if (receive[i] != sum(i)) return wrong("all-reduce", i);
  }
  rhAllReduce(send, send, count, rhUint32, rhSum, comm, nullptr);
  for (size_t i = 0; i < count; ++i) {
    if (send[i] != sum(i)) return wrong("all-reduce in place", i);
  }
  give(count);
  rhAllGather(send, receive, count, rhUint32, comm, nullptr);
  for (size_t i = 0; i < count * all; ++i) {
    if (receive[i] != Value(static_cast<int>(i / count), i % count)) return wrong("all-gather", i);
  }
  give(count * all);
  rhReduceScatter(send, receive, count, rhUint32, rhSum, comm, nullptr);
  for (size_t i = 0; i < count; ++i) {
    if (receive[i] != sum(static_cast<size_t>(rank) * count + i)) return wrong("reduce-scatter", i);
  }
  give(count * all);
  rhAlltoAll(send, receive, count, rhUint32, comm, nullptr);
  for (size_t i = 0; i < count * all; ++i) {
    const size_t given = static_cast<size_t>(rank) * count + i % count;
    if (receive[i] != Value(static_cast<int>(i / count), given)) return wrong("all-to-all", i);
  }
  for (int root = 0; root < ranks; ++root) {
    give(count);
    rhGather(send, rank == root ? receive : nullptr, count, rhUint32, root, comm, nullptr);
    for (size_t i = 0; rank == root && i < count * all; ++i) {
      if (receive[i] != Value(static_cast<int>(i / count), i % count)) return wrong("gather", i);
    }
    give(count * all);
    rhScatter(rank == root ? send : nullptr, receive, count, rhUint32, root, comm, nullptr);
    for (size_t i = 0; i < count; ++i) {
      if (receive[i] != Value(root, static_cast<size_t>(rank) * count + i)) {
        return wrong("scatter", i);
      }
    }
    give(count);
    rhBroadcast(rank == root ? send : nullptr, receive, count, rhUint32, root, comm, nullptr);
    for (size_t i = 0; i < count; ++i) {
      if (receive[i] != Value(root, i)) return wrong("broadcast", i);
    }
    rhReduce(send, rank == root ? receive : nullptr, count, rhUint32, rhSum, root, comm, nullptr);
    for (size_t i = 0; rank == root && i < count; ++i) {
      if (receive[i] != sum(i)) return wrong("reduce", i);
    }
  }
  return "";
}

class WindowTest : public ::testing::TestWithParam<std::string> {};

TEST_P(WindowTest, CollectivesAreRightInAndOutsideOfWindows) {
  for (const int ranks : {1, 2, 3}) {
    EXPECT_THAT(
        RunForks(
            ranks, GetParam(),
            [&](rhComm_t comm, int rank) -> std::string {
              void* memory = nullptr;
              if (rhMemAlloc(&memory, kRoom) != rhSuccess) return rhGetLastError(nullptr);
              auto* const values = static_cast<uint32_t*>(memory);
              std::vector<uint32_t> elsewhere(kRoom / sizeof(uint32_t));
              constexpr size_t kHalf = kRoom / sizeof(uint32_t) / 2;
              // Pieces of different places and sizes, that come and go.
              const auto own = static_cast<size_t>(rank);
              for (int round = 0; round < 2; ++round) {
                std::array<rhWindow_t, 2> windows = {};
                for (rhWindow_t& window : windows) {
                  const bool second = &window == &windows[1];
                  if (rhCommWindowRegister(comm, values + (second ? kHalf : 0),
                                           (kHalf - (second ? own : 0)) * sizeof(uint32_t), &window,
                                           0) != rhSuccess) {
                    return rhGetLastError(comm);
                  }
                }
                for (const size_t count : {size_t{1}, size_t{1024}, size_t{1025}, size_t{70001}}) {
                  // In one window; in two, unaligned; with the last rank's outside.
                  std::string wrong = TryAll(comm, rank, ranks, values, values + kHalf / 2, count);
                  if (wrong.empty()) {
                    wrong =
                        TryAll(comm, rank, ranks, values + own, values + kHalf + 3 * own, count);
                  }
                  if (wrong.empty()) {
                    uint32_t* const receive = rank == ranks - 1 ? elsewhere.data() : values + kHalf;
                    wrong = TryAll(comm, rank, ranks, values, receive, count);
                  }
                  if (!wrong.empty()) return wrong;
                }
                // Memory may go before its windows.
                if (round == 1 && rhMemFree(memory) != rhSuccess) return rhGetLastError(nullptr);
                for (rhWindow_t window : windows) {
                  if (rhCommWindowDeregister(comm, window) != rhSuccess)
                    return rhGetLastError(comm);
                }
              }
              return TryAll(comm, rank, ranks, elsewhere.data(), elsewhere.data() + kHalf, 5000);
            }),
        Each(IsEmpty()));
  }
}

TEST_P(WindowTest, MemoryOfAnotherKindIsRefusedOnAllRanks) {
  const auto outputs = RunForks(3, GetParam(), [](rhComm_t comm, int rank) -> std::string {
    void* memory = nullptr;
    rhMemAlloc(&memory, 10000);
    std::vector<char> other(10000);
    rhWindow_t window = nullptr;
    std::string said;
    for (void* buffer : {rank == 1 ? other.data() : memory, memory}) {
      const rhResult_t result = rhCommWindowRegister(comm, buffer, 10000, &window, 0);
      absl::StrAppend(&said, result == rhSuccess ? "right" : rhGetLastError(comm), ". ");
    }
    // The communicator stays usable.
    int32_t one = 1;
    rhAllReduce(&one, &one, 1, rhInt32, rhSum, comm, nullptr);
    return absl::StrCat(said, one);
  });
  EXPECT_EQ(outputs[0],
            "rhCommWindowRegister: rank 1 cannot share its memory; see its log. right. 3");
  EXPECT_EQ(outputs[1],
            "rhCommWindowRegister: the memory is not all from one call of rhMemAlloc. right. 3");
  EXPECT_EQ(outputs[2], outputs[0]);
}

TEST_P(WindowTest, WrongArgumentsOfOneRankAreRefusedOnAll) {
  const auto outputs = RunForks(2, GetParam(), [](rhComm_t comm, int rank) -> std::string {
    void* memory = nullptr;
    rhMemAlloc(&memory, 10000);
    rhWindow_t window = nullptr;
    std::string said;
    const auto say = [&](rhResult_t result) {
      absl::StrAppend(&said, result, " ", rhGetLastError(comm), ". ");
    };
    say(rhCommWindowRegister(comm, memory, 10000, &window, rank));
    say(rhCommWindowRegister(comm, memory, 10000, rank == 1 ? nullptr : &window, 0));
    // The communicator stays usable.
    absl::StrAppend(&said, rhBarrier(comm, nullptr));
    return said;
  });
  EXPECT_EQ(outputs[0],
            "4 rhCommWindowRegister: rank 1 cannot share its memory; see its log. "
            "4 rhCommWindowRegister: rank 1 cannot share its memory; see its log. 0");
  EXPECT_EQ(outputs[1],
            "4 rhCommWindowRegister: win_flags must be 0. 4 rhCommWindowRegister: win is NULL. 0");
}

TEST_P(WindowTest, WrongArgumentsAreNamed) {
  EXPECT_THAT(RunForks(1, GetParam(),
                       [](rhComm_t comm, int) -> std::string {
                         void* memory = nullptr;
                         rhMemAlloc(&memory, 100);
                         rhWindow_t window = nullptr;
                         std::string said;
                         const auto say = [&](rhResult_t result, rhComm_t where) {
                           absl::StrAppend(&said, result, " ", rhGetLastError(where), "\n");
                         };
                         say(rhMemAlloc(nullptr, 1), nullptr);
                         say(rhMemAlloc(&memory, 0), nullptr);
                         say(rhMemAlloc(&memory, std::numeric_limits<size_t>::max()), nullptr);
                         say(rhMemFree(&said), nullptr);
                         say(rhCommWindowRegister(comm, &said, 1, nullptr, 0), comm);
                         say(rhCommWindowRegister(comm, &said, 1, &window, 1), comm);
                         say(rhCommWindowDeregister(comm, nullptr), comm);
                         return said;
                       }),
              Each(::testing::MatchesRegex("4 rhMemAlloc: ptr is NULL\n"
                                           "4 rhMemAlloc: size is 0\n"
                                           "2 rhMemAlloc: shared memory of [0-9]+ MiB is too much "
                                           "for a process that can still get [0-9]+ MiB; raise the "
                                           "pod's memory limit\n"
                                           "4 rhMemFree: this is not the start of memory from "
                                           "rhMemAlloc\n"
                                           "4 rhCommWindowRegister: win is NULL\n"
                                           "4 rhCommWindowRegister: win_flags must be 0\n"
                                           "4 rhCommWindowDeregister: win is not, or no longer, "
                                           "a window of this communicator\n")));
}

// A rank stands still in a call, is excluded, and continues. It must not write into memory of the
// others, which they use again, nor into what shares a page with it.
TEST(WindowDeathTest, ALateRankChangesNothing) {
  constexpr size_t kBytes = size_t{64} << 20U;
  constexpr size_t kBeside = 100;  // other data in the first and the last page
  const auto body = [](rhComm_t& comm, int rank) -> std::string {
    const int32_t own = ::getpid();
    std::array<int32_t, 3> processes{};
    rhAllGather(&own, processes.data(), 1, rhInt32, comm, nullptr);
    void* memory = nullptr;
    rhWindow_t window = nullptr;
    if (rhMemAlloc(&memory, kBytes) != rhSuccess) return rhGetLastError(nullptr);
    if (rhCommWindowRegister(comm, memory, kBytes, &window, 0) != rhSuccess) {
      return rhGetLastError(comm);
    }
    auto* const bytes = static_cast<uint8_t*>(memory);
    std::memset(bytes, 1, kBytes);
    rhBarrier(comm, nullptr);
    std::thread stop;
    if (rank == 0) {
      stop = std::thread([&] {
        absl::SleepFor(absl::Milliseconds(3));
        ::kill(processes[2], SIGSTOP);
      });
    }
    const rhResult_t result = rhAllReduce(bytes + kBeside, bytes + kBeside, kBytes - 2 * kBeside,
                                          rhUint8, rhSum, comm, nullptr);
    if (rank == 0) stop.join();
    if (rank == 2) return result == rhSuccess ? "right" : rhGetLastError(comm);
    if (result == rhSuccess) return "the rank was not stopped in the call";
    std::memset(bytes, 0x5a, kBytes);
    rhComm_t fewer = nullptr;
    const int excluded = 2;
    if (rhCommShrink(comm, &excluded, 1, &fewer, nullptr) != rhSuccess) return rhGetLastError(comm);
    rhCommAbort(std::exchange(comm, fewer));
    if (rank == 0) ::kill(processes[2], SIGCONT);
    absl::SleepFor(absl::Milliseconds(500));
    const auto changed = kBytes - static_cast<size_t>(std::count(bytes, bytes + kBytes, 0x5a));
    // The same memory serves the communicator that is left.
    if (rhCommWindowRegister(comm, memory, kBytes, &window, 0) != rhSuccess) {
      return rhGetLastError(comm);
    }
    auto* const values = static_cast<uint32_t*>(memory);
    return absl::StrCat(changed, " bytes changed. ",
                        TryAll(comm, rank, 2, values, values + 300000, 70001));
  };
  const auto outputs = RunForks(3, "shm", body, 100, {{"RAILHEAD_TIMEOUT_SECONDS", "1"}});
  for (const int rank : {0, 1}) {
    EXPECT_EQ(outputs[static_cast<size_t>(rank)], "0 bytes changed. ") << rank;
  }
  EXPECT_NE(outputs[2], "right");
}

// After a failed call windows of other communicators do not reach its buffer, either.
TEST(WindowDeathTest, MemoryOfAFailedCallServesOtherCommunicators) {
  const auto body = [](rhComm_t& comm, int rank) -> std::string {
    rhComm_t second = nullptr;
    if (rhCommSplit(comm, 0, rank, &second, nullptr) != rhSuccess) return rhGetLastError(comm);
    void* memory = nullptr;
    if (rhMemAlloc(&memory, kRoom) != rhSuccess) return rhGetLastError(nullptr);
    for (rhComm_t each : {comm, second}) {
      rhWindow_t window = nullptr;
      if (rhCommWindowRegister(each, memory, kRoom, &window, 0) != rhSuccess) {
        return rhGetLastError(each);
      }
    }
    auto* const values = static_cast<uint32_t*>(memory);
    std::string wrong = TryAll(second, rank, 3, values, values + 300000, 70001);
    if (!wrong.empty()) return wrong;
    // It fails for the others when they have told each other of their buffers.
    if (rank != 1 &&
        rhAllReduce(values, values, 250000, rhUint32, rhSum, second, nullptr) == rhSuccess) {
      return "the call did not fail";
    }
    rhCommAbort(second);
    return TryAll(comm, rank, 3, values, values + 300000, 70001);
  };
  EXPECT_THAT(RunForks(3, "shm", body), Each(IsEmpty()));
}

// One of them goes after all have told each other what they have.
TEST(WindowDeathTest, ADeathEndsTheExchangeOfMemory) {
  const auto outputs = RunForks(3, "shm", [](rhComm_t& comm, int rank) -> std::string {
    if (rank == 2) {
      // An offer as rhCommWindowRegister makes it: a byte, three numbers and an address.
      constexpr size_t kOffer = 1 + 3 * sizeof(uint64_t) + shm::SegmentServer::kAddressSize;
      std::array<char, kOffer> offer = {1};
      std::array<char, 3 * kOffer> all{};
      rhAllGather(offer.data(), all.data(), kOffer, rhUint8, comm, nullptr);
      absl::SleepFor(absl::Milliseconds(300));
      ::raise(SIGKILL);
    }
    void* memory = nullptr;
    rhMemAlloc(&memory, 10000);
    rhWindow_t window = nullptr;
    const absl::Time start = MonotonicNow();
    const rhResult_t result = rhCommWindowRegister(comm, memory, 10000, &window, 0);
    const absl::Duration took = MonotonicNow() - start;
    std::string text =
        absl::StrCat(result, took < absl::Seconds(6) ? "" : absl::FormatDuration(took), " ",
                     rhGetLastError(comm));
    rhCommAbort(std::exchange(comm, nullptr));
    return text;
  });
  for (const int rank : {0, 1}) {
    EXPECT_THAT(outputs[static_cast<size_t>(rank)],
                AllOf(StartsWith(absl::StrCat(rhRemoteError, " rhCommWindowRegister: ")),
                      HasSubstr("rank 2 (pod p2)")));
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, WindowTest, ::testing::Values("shm", "tcp"));

}  // namespace
}  // namespace railhead
