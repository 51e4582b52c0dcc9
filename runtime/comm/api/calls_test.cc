// SPDX-License-Identifier: Apache-2.0
//
// Sends and receives, groups of calls, and calls on streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/testing/forked_ranks.h"
#include "runtime/testing/no_threads.h"

namespace railhead {
namespace {

using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::RunForks;

std::vector<std::string> Right(int ranks) {
  return std::vector<std::string>(static_cast<size_t>(ranks), "right");
}

std::vector<int> Numbers(size_t count, int first) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// Seconds, less than the timeout of a rank that waits in vain.
constexpr double kSoon = 50;

class CallsTest : public ::testing::TestWithParam<std::string> {};

// Large enough that a send cannot end before its receive begins.
constexpr size_t kLarge = 700001;

TEST_P(CallsTest, OneSendsAndTheOtherReceives) {
  EXPECT_EQ(RunForks(3, GetParam(),
                     [](rhComm_t comm, int rank) -> std::string {
                       for (const size_t count : {size_t{0}, size_t{1}, kLarge}) {
                         std::vector<int> data = Numbers(count, rank == 0 ? 17 : 0);
                         rhResult_t result = rhSuccess;
                         if (rank == 0)
                           result = rhSend(data.data(), count, rhInt32, 2, comm, nullptr);
                         if (rank == 2)
                           result = rhRecv(data.data(), count, rhInt32, 0, comm, nullptr);
                         if (result != rhSuccess) return rhGetLastError(comm);
                         if (rank == 2 && data != Numbers(count, 17)) return "wrong data";
                       }
                       return "right";
                     }),
            Right(3));
}

// All pairs, including each rank with itself, several messages in each direction, each rank in its
// own order.
TEST_P(CallsTest, AGroupGoesOnAtTheSameTime) {
  constexpr int kRanks = 4;
  constexpr int kMessages = 3;
  const auto size = [](int from, int to, int n) {
    return static_cast<size_t>((from * 7 + to * 3 + n * 50021) % 60000);
  };
  const auto first = [](int from, int to, int n) { return from * 100000 + to * 1000 + n; };
  const auto body = [&](rhComm_t comm, int rank) -> std::string {
    for (unsigned round = 0; round < 10; ++round) {
      std::vector<int> peers = Numbers(kRanks, 0);
      std::shuffle(peers.begin(), peers.end(),
                   std::mt19937(round * kRanks + static_cast<unsigned>(rank)));
      std::vector<std::vector<int>> out;
      std::vector<std::vector<int>> in;
      for (const int peer : peers) {
        for (int n = 0; n < kMessages; ++n) {
          out.push_back(Numbers(size(rank, peer, n), first(rank, peer, n)));
          in.emplace_back(size(peer, rank, n));
        }
      }
      rhGroupStart();
      size_t at = 0;
      for (const int peer : peers) {
        for (int n = 0; n < kMessages; ++n, ++at) {
          rhSend(out[at].data(), out[at].size(), rhInt32, peer, comm, nullptr);
          rhRecv(in[at].data(), in[at].size(), rhInt32, peer, comm, nullptr);
        }
      }
      if (rhGroupEnd() != rhSuccess) return rhGetLastError(comm);
      at = 0;
      for (const int peer : peers) {
        for (int n = 0; n < kMessages; ++n, ++at) {
          if (in[at] != Numbers(size(peer, rank, n), first(peer, rank, n))) return "wrong data";
        }
      }
    }
    return "right";
  };
  EXPECT_EQ(RunForks(kRanks, GetParam(), body), Right(kRanks));
}

TEST_P(CallsTest, CollectivesOfAGroupAreDoneInTheirOrder) {
  EXPECT_EQ(RunForks(2, GetParam(),
                     [](rhComm_t comm, int rank) -> std::string {
                       int sum = 0;
                       int twice = 0;
                       const int one = 1;
                       rhGroupStart();
                       rhGroupStart();
                       rhAllReduce(&one, &sum, 1, rhInt32, rhSum, comm, nullptr);
                       rhGroupEnd();
                       rhAllReduce(&sum, &twice, 1, rhInt32, rhSum, comm, nullptr);
                       int other = -1;
                       rhSend(&rank, 1, rhInt32, 1 - rank, comm, nullptr);
                       rhRecv(&other, 1, rhInt32, 1 - rank, comm, nullptr);
                       if (sum != 0 || other != -1) return "done before the group's end";
                       if (rhGroupEnd() != rhSuccess) return rhGetLastError(comm);
                       return sum == 2 && twice == 4 && other == 1 - rank ? "right" : "wrong";
                     }),
            Right(2));
}

TEST_P(CallsTest, WrongOnesAreRefused) {
  EXPECT_EQ(RunForks(2, GetParam(),
                     [](rhComm_t comm, int rank) -> std::string {
                       int value = 0;
                       std::string errors;
                       const auto refused = [&](rhResult_t result, rhResult_t expected,
                                                const std::string& text, rhComm_t of) {
                         if (result != expected || rhGetLastError(of) != text) {
                           absl::StrAppend(&errors, "not '", text, "' but '", rhGetLastError(of),
                                           "'; ");
                         }
                       };
                       refused(rhSend(&value, 1, rhInt32, 2, comm, nullptr), rhInvalidArgument,
                               "rhSend: peer 2 does not exist; ranks go from 0 to 1", comm);
                       refused(rhRecv(nullptr, 1, rhInt32, 0, comm, nullptr), rhInvalidArgument,
                               "rhRecv: recvbuf is NULL", comm);
                       refused(rhGroupEnd(), rhInvalidUsage,
                               "rhGroupEnd: called without rhGroupStart", nullptr);
                       // In a group as well, and the rest of it is done.
                       int sum = 0;
                       const int one = 1;
                       rhGroupStart();
                       refused(rhSend(&value, 1, rhInt32, -1, comm, nullptr), rhInvalidArgument,
                               "rhSend: peer -1 does not exist; ranks go from 0 to 1", comm);
                       rhAllReduce(&one, &sum, 1, rhInt32, rhSum, comm, nullptr);
                       if (rhGroupEnd() != rhSuccess || sum != 2) errors += "the rest was not done";
                       return errors.empty() ? "right" : absl::StrCat("rank ", rank, ": ", errors);
                     }),
            Right(2));
}

// An error of one rank affects only that rank, and the communicator stays usable.
TEST_P(CallsTest, WhatARankSendsToItselfIsCheckedBeforeAnythingHappens) {
  EXPECT_EQ(
      RunForks(3, GetParam(),
               [](rhComm_t comm, int rank) -> std::string {
                 std::string errors;
                 int value = 1;
                 const auto refused = [&](rhResult_t result, const std::string& text) {
                   if (result == rhInvalidArgument && rhGetLastError(comm) == text) return;
                   absl::StrAppend(&errors, "not '", text, "' but '", rhGetLastError(comm), "'; ");
                 };
                 if (rank == 1) {
                   for (const size_t count : {size_t{0}, size_t{1}}) {
                     refused(rhSend(&value, count, rhInt32, rank, comm, nullptr),
                             "rhSend: 1 sends to this rank itself, but 0 receives from itself; put "
                             "both into one group");
                     refused(rhRecv(&value, count, rhInt32, rank, comm, nullptr),
                             "rhRecv: 0 sends to this rank itself, but 1 receives from itself; put "
                             "both into one group");
                   }
                   // Nothing of the group starts. Rank 2 would receive what is sent to it in place
                   // of the next message.
                   int sum = 0;
                   int wrong = 99;
                   rhGroupStart();
                   rhAllReduce(&wrong, &sum, 1, rhInt32, rhSum, comm, nullptr);
                   rhSend(&wrong, 1, rhInt32, 2, comm, nullptr);
                   rhSend(&wrong, 1, rhInt32, 1, comm, nullptr);
                   rhRecv(&value, 1, rhInt8, 1, comm, nullptr);
                   refused(rhGroupEnd(),
                           "rhSend: number 0 of the sends to this rank itself has 4 bytes, but the "
                           "receive from itself has 1");
                   rhAllReduce(&value, &sum, 1, rhInt32, rhSum, comm, nullptr);
                   if (sum != 3) errors += "the group's collective was done; ";
                   rhSend(&value, 1, rhInt32, 2, comm, nullptr);
                 } else {
                   int sum = 0;
                   rhAllReduce(&value, &sum, 1, rhInt32, rhSum, comm, nullptr);
                   if (sum != 3) errors += "the group's collective was done; ";
                   int got = 0;
                   if (rank == 2) {
                     rhRecv(&got, 1, rhInt32, 1, comm, nullptr);
                     if (got != 1) errors += "what was refused was sent; ";
                   }
                 }
                 if (rhBarrier(comm, nullptr) != rhSuccess) errors += rhGetLastError(comm);
                 return errors.empty() ? "right" : absl::StrCat("rank ", rank, ": ", errors);
               }),
      Right(3));
}

// Neither those of another communicator, or on a stream.
TEST_P(CallsTest, NothingOfAWrongGroupStartsOnAnyCommunicator) {
  EXPECT_EQ(RunForks(2, GetParam(),
                     [](rhComm_t comm, int rank) -> std::string {
                       rhComm_t other = nullptr;
                       rhComm_t third = nullptr;
                       if (rhCommSplit(comm, 0, 0, &other, nullptr) != rhSuccess) return "no other";
                       if (rhCommSplit(comm, 0, 0, &third, nullptr) != rhSuccess) return "no third";
                       rhStream_t stream = nullptr;
                       rhStreamCreate(&stream);
                       int value = 1;
                       std::string errors;
                       if (rank == 1) {
                         rhGroupStart();
                         rhBarrier(other, nullptr);
                         rhBarrier(third, stream);
                         rhSend(&value, 1, rhInt32, rank, comm, nullptr);
                         if (rhGroupEnd() != rhInvalidArgument) errors += "not refused; ";
                         if (rhStreamSynchronize(stream) != rhSuccess) errors += "failed; ";
                       }
                       std::vector<int> sums(3);
                       size_t n = 0;
                       for (rhComm_t each : {comm, other, third}) {
                         // A barrier of the group would meet this.
                         if (rhAllReduce(&value, &sums[n++], 1, rhInt32, rhSum, each, nullptr) !=
                             rhSuccess) {
                           absl::StrAppend(&errors, rhGetLastError(each), "; ");
                         }
                       }
                       rhStreamDestroy(stream);
                       rhCommDestroy(third);
                       rhCommDestroy(other);
                       if (sums != std::vector<int>{2, 2, 2}) errors += "wrong sums; ";
                       return errors.empty() ? "right" : errors;
                     }),
            Right(2));
}

// Calls of a group on several communicators run concurrently, in any order of recording.
TEST_P(CallsTest, AGroupOverSeveralCommunicatorsKnowsNoOrderAmongThem) {
  const auto body = [](rhComm_t comm, int rank, bool on_stream) -> std::string {
    rhComm_t other = nullptr;
    if (rhCommSplit(comm, 0, 0, &other, nullptr) != rhSuccess) return rhGetLastError(comm);
    rhStream_t stream = nullptr;
    if (on_stream) rhStreamCreate(&stream);
    std::string errors;
    const int peer = 1 - rank;
    std::vector<int> sums(2);
    const int one = 1;
    const int two = 2;
    const std::vector<int> out = Numbers(kLarge, rank);
    std::vector<int> in(kLarge);
    for (int round = 0; round < 5; ++round) {
      sums = {0, 0};
      std::fill(in.begin(), in.end(), 0);
      const std::vector<rhComm_t> comms =
          rank == 0 ? std::vector<rhComm_t>{comm, other} : std::vector<rhComm_t>{other, comm};
      rhGroupStart();
      for (rhComm_t c : comms) {
        rhAllReduce(c == comm ? &one : &two, c == comm ? sums.data() : &sums[1], 1, rhInt32, rhSum,
                    c, stream);
      }
      // Large ones: a send does not end before its receive has begun.
      rhSend(out.data(), kLarge, rhInt32, peer, comms[0], stream);
      rhRecv(in.data(), kLarge, rhInt32, peer, comms[1], stream);
      if (rhGroupEnd() != rhSuccess) {
        return absl::StrCat("group: ", rhGetLastError(comm), " / ", rhGetLastError(other));
      }
      if (on_stream && rhStreamSynchronize(stream) != rhSuccess) {
        return absl::StrCat("stream: ", rhGetLastError(comm), " / ", rhGetLastError(other));
      }
      if (sums != std::vector<int>{2, 4}) errors += "wrong sums; ";
      if (in != Numbers(kLarge, peer)) errors += "wrong data; ";
    }
    rhStreamDestroy(stream);
    rhCommDestroy(other);
    return errors.empty() ? "right" : errors;
  };
  for (const bool on_stream : {false, true}) {
    EXPECT_EQ(RunForks(
                  2, GetParam(),
                  [&](rhComm_t comm, int rank) { return body(comm, rank, on_stream); }, kSoon),
              Right(2))
        << (on_stream ? "on a stream" : "blocking");
  }
}

// The calls of a group run on threads of their own. One for which there is no thread fails on all
// ranks, at once, and is over.
TEST_P(CallsTest, ACallOfAGroupWithoutAThreadEndsItsCommunicator) {
  for (const bool on_stream : {true, false}) {
    const auto body = [on_stream](rhComm_t comm, int rank) -> std::string {
      rhComm_t other = nullptr;
      if (rhCommSplit(comm, 0, 0, &other, nullptr) != rhSuccess) return rhGetLastError(comm);
      // Before a failure both must have got through the start.
      if (rhBarrier(other, nullptr) != rhSuccess) return rhGetLastError(other);
      rhStream_t stream = nullptr;
      if (on_stream) rhStreamCreate(&stream);
      int sum = 0;
      const int one = 1;
      {
        std::optional<testing::NoThreads> none;
        if (rank == 0) none.emplace();
        rhGroupStart();
        rhAllReduce(&one, &sum, 1, rhInt32, rhSum, comm, stream);
        rhBarrier(other, stream);
        const rhResult_t ended = rhGroupEnd();
        if (on_stream && ended != rhSuccess) return rhGetLastError(comm);
        const rhResult_t result = on_stream ? rhStreamDestroy(stream) : ended;
        if (result != rhSystemError) return absl::StrCat("result ", result);
      }
      std::string text = rhGetLastError(other);
      if (sum != 2) text += "; wrong sum";
      if (rhBarrier(comm, nullptr) != rhSuccess) absl::StrAppend(&text, rhGetLastError(comm));
      if (rank == 0 && rhCommFinalize(other) == rhSuccess) text += "; finalized";
      rhCommAbort(other);
      return text;
    };
    const std::vector<std::string> outputs = RunForks(2, GetParam(), body, kSoon);
    EXPECT_THAT(outputs, Each(HasSubstr("rank 0 (pod p0): rhBarrier: cannot start a thread")));
    EXPECT_THAT(outputs, Each(EndsWith("or its memory limit")));
  }
}

// A failure of one communicator is not reported for another one.
TEST_P(CallsTest, AStreamTellsWhoseFailureItWas) {
  EXPECT_EQ(RunForks(2, GetParam(),
                     [](rhComm_t comm, int rank) -> std::string {
                       rhComm_t doomed = nullptr;
                       if (rhCommSplit(comm, 0, 0, &doomed, nullptr) != rhSuccess)
                         return "no split";
                       rhStream_t stream = nullptr;
                       rhStreamCreate(&stream);
                       int value = 1;
                       // The n-th of one rank meets the n-th of the other.
                       rhAllReduce(&value, &value, static_cast<size_t>(1 - rank), rhInt32, rhSum,
                                   doomed, stream);
                       rhBarrier(doomed, stream);
                       if (rhStreamSynchronize(stream) == rhSuccess) return "no failure";
                       // Reported only once.
                       int sum = 0;
                       const int one = 1;
                       rhRequest_t request = nullptr;
                       rhAllReduce(&one, &sum, 1, rhInt32, rhSum, comm, stream);
                       rhStreamRequest(stream, &request);
                       const rhResult_t waited = rhRequestWait(request);
                       rhRequestFree(request);
                       if (waited != rhSuccess) return "the failure of another communicator";
                       if (rhStreamSynchronize(stream) != rhSuccess) return "told twice";
                       if (rhStreamDestroy(stream) != rhSuccess) return "told at the end";
                       rhCommAbort(doomed);
                       return sum == 2 ? "right" : "wrong sum";
                     }),
            Right(2));
}

TEST_P(CallsTest, LengthsThatDifferAreAnErrorOnBothSides) {
  const auto outputs = RunForks(2, GetParam(), [](rhComm_t comm, int rank) -> std::string {
    std::vector<int> data(kLarge);
    if (rank == 0) {
      rhSend(data.data(), kLarge, rhInt32, 1, comm, nullptr);
      // A send may end before the other side has looked at it.
      rhBarrier(comm, nullptr);
    } else {
      rhRecv(data.data(), kLarge - 1, rhInt32, 0, comm, nullptr);
    }
    return rhGetLastError(comm);
  });
  for (const std::string& output : outputs) {
    EXPECT_THAT(output, HasSubstr("pass the same count on all ranks"));
  }
}

TEST_P(CallsTest, AStreamDoesCallsInTheBackground) {
  EXPECT_EQ(RunForks(3, GetParam(),
                     [](rhComm_t comm, int rank) -> std::string {
                       rhStream_t stream = nullptr;
                       rhStreamCreate(&stream);
                       constexpr int kCalls = 50;
                       std::vector<std::vector<int>> data;
                       for (int i = 0; i < kCalls; ++i) data.push_back(Numbers(10007, rank + i));
                       std::vector<rhRequest_t> requests;
                       for (std::vector<int>& numbers : data) {
                         if (rhAllReduce(numbers.data(), numbers.data(), numbers.size(), rhInt32,
                                         rhMax, comm, stream) != rhSuccess) {
                           return rhGetLastError(comm);
                         }
                         rhStreamRequest(stream, &requests.emplace_back());
                       }
                       for (int i = 0; i < kCalls; ++i) {
                         const auto n = static_cast<size_t>(i);
                         int done = 0;
                         while (i % 2 == 0 && done == 0) {
                           if (rhRequestTest(requests[n], &done) != rhSuccess) return "test failed";
                         }
                         if (rhRequestWait(requests[n]) != rhSuccess) return rhGetLastError(comm);
                         rhRequestFree(requests[n]);
                         if (data[n] != Numbers(10007, 2 + i)) return "wrong data";
                       }
                       rhResult_t state = rhSystemError;
                       rhCommGetAsyncError(comm, &state);
                       if (state != rhSuccess) return "async error";
                       if (rhStreamDestroy(stream) != rhSuccess) return "destroy failed";
                       // And without a stream again.
                       return rhBarrier(comm, nullptr) == rhSuccess ? "right"
                                                                    : rhGetLastError(comm);
                     }),
            Right(3));
}

TEST_P(CallsTest, ACommunicatorIsOnOneStream) {
  EXPECT_EQ(RunForks(2, GetParam(),
                     [](rhComm_t comm, int rank) -> std::string {
                       rhStream_t one = nullptr;
                       rhStream_t other = nullptr;
                       rhStreamCreate(&one);
                       rhStreamCreate(&other);
                       std::string errors;
                       int value = 0;
                       int go = 0;
                       if (rank == 0) {
                         // Waits until rank 1 comes, after this.
                         rhRecv(&value, 1, rhInt32, 1, comm, one);
                         if (rhBarrier(comm, nullptr) != rhInvalidUsage)
                           errors += "without a stream; ";
                         if (rhBarrier(comm, other) != rhInvalidUsage) errors += "another stream; ";
                         if (rhCommDestroy(comm) != rhInvalidUsage) errors += "destroyed; ";
                         rhResult_t state = rhSuccess;
                         rhCommGetAsyncError(comm, &state);
                         if (state != rhInProgress) errors += "not in progress; ";
                       }
                       // Over the streams of both, so that rank 1 comes after the checks of rank 0.
                       rhSend(&rank, 1, rhInt32, 1 - rank, comm, one);
                       if (rank == 1) {
                         rhRecv(&go, 1, rhInt32, 0, comm, one);
                       }
                       if (rhStreamSynchronize(one) != rhSuccess) errors += rhGetLastError(comm);
                       rhStreamDestroy(one);
                       rhStreamDestroy(other);
                       return errors.empty() ? "right" : errors;
                     }),
            Right(2));
}

TEST_P(CallsTest, AbortEndsWhatIsOnAStream) {
  EXPECT_EQ(RunForks(2, GetParam(),
                     [](rhComm_t& comm, int rank) -> std::string {
                       rhStream_t stream = nullptr;
                       rhStreamCreate(&stream);
                       int value = 0;
                       // Before an abort both must have got through the start.
                       if (rank == 0) rhRecv(&value, 1, rhInt32, 1, comm, nullptr);
                       if (rank == 1) rhSend(&value, 1, rhInt32, 0, comm, nullptr);
                       if (rank == 0) {
                         for (int i = 0; i < 3; ++i) rhRecv(&value, 1, rhInt32, 1, comm, stream);
                         rhCommAbort(comm);
                         comm = nullptr;
                         return rhStreamDestroy(stream) == rhRemoteError ? "gone" : "no error";
                       }
                       rhRecv(&value, 1, rhInt32, 0, comm, stream);
                       if (rhStreamDestroy(stream) != rhRemoteError) return "no error";
                       rhResult_t state = rhSuccess;
                       rhCommGetAsyncError(comm, &state);
                       return state == rhRemoteError ? "right" : "no async error";
                     })
                .back(),
            "right");
}

// In a large world most ranks connect on first use.
TEST(LargeWorldTest, AnyTwoRanksSendToEachOther) {
  constexpr int kRanks = 66;
  const auto body = [](rhComm_t comm, int rank) -> std::string {
    // So nothing is left out of the choice of algorithms.
    for (const auto& [collective, algorithm] :
         {std::pair("all_to_all", ": pairwise, "), std::pair("gather", ": direct, ")}) {
      std::array<char, 4096> text{};
      rhCommExplain(comm, collective, kRanks * (size_t{64} << 20U), text.data(), text.size());
      if (std::string(text.data()).find(algorithm) == std::string::npos) return text.data();
    }
    // On rings: every rank sends before it receives.
    for (const int distance : {3, 29, 33}) {
      const int from = (rank + kRanks - distance) % kRanks;
      int got = -1;
      if (rhSend(&rank, 1, rhInt32, (rank + distance) % kRanks, comm, nullptr) != rhSuccess ||
          rhRecv(&got, 1, rhInt32, from, comm, nullptr) != rhSuccess) {
        return rhGetLastError(comm);
      }
      if (got != from) return "wrong data";
    }
    // Parts that differ: rank a sends a + b values to rank b.
    std::vector<size_t> counts(kRanks);
    std::iota(counts.begin(), counts.end(), rank);
    std::vector<size_t> places(kRanks);
    std::exclusive_scan(counts.begin(), counts.end(), places.begin(), size_t{0});
    const size_t all = places.back() + counts.back();
    const std::vector<int> mine(all, rank);
    std::vector<int> theirs(all, -1);
    if (rhAlltoAllv(mine.data(), counts.data(), places.data(), theirs.data(), counts.data(),
                    places.data(), rhInt32, comm, nullptr) != rhSuccess) {
      return rhGetLastError(comm);
    }
    std::vector<int> expected;
    for (int other = 0; other < kRanks; ++other) {
      expected.insert(expected.end(), counts[static_cast<size_t>(other)], other);
    }
    return theirs == expected ? "right" : "wrong parts";
  };
  EXPECT_EQ(RunForks(kRanks, "tcp", body), Right(kRanks));
}

// Rank 1 sends on the first communicator only after rank 0 has aborted the second one, whose call
// is queued behind that of the first one.
TEST_P(CallsTest, AnAbortDoesNotWaitForAnotherCommunicatorOnTheStream) {
  EXPECT_EQ(RunForks(
                2, GetParam(),
                [](rhComm_t comm, int rank) -> std::string {
                  rhComm_t other = nullptr;
                  rhComm_t signal = nullptr;
                  if (rhCommSplit(comm, 0, 0, &other, nullptr) != rhSuccess) return "no other";
                  if (rhCommSplit(comm, 0, 0, &signal, nullptr) != rhSuccess) return "no signal";
                  int value = rank;
                  if (rank == 1) {
                    if (rhBarrier(signal, nullptr) != rhSuccess) return rhGetLastError(signal);
                    if (rhSend(&value, 1, rhInt32, 0, comm, nullptr) != rhSuccess)
                      return "not sent";
                    rhCommAbort(other);
                    rhCommDestroy(signal);
                    return "right";
                  }
                  rhStream_t stream = nullptr;
                  rhRequest_t first = nullptr;
                  rhStreamCreate(&stream);
                  rhRecv(&value, 1, rhInt32, 1, comm, stream);
                  rhStreamRequest(stream, &first);
                  rhBarrier(other, stream);
                  if (rhCommAbort(other) != rhSuccess) return "not aborted";
                  if (rhBarrier(signal, nullptr) != rhSuccess) return rhGetLastError(signal);
                  if (rhRequestWait(first) != rhSuccess || value != 1) return "not received";
                  rhRequestFree(first);
                  // Calls that were not started have failed in their turn.
                  if (rhStreamDestroy(stream) != rhRemoteError) return "no failure";
                  rhCommDestroy(signal);
                  return "right";
                },
                kSoon),
            Right(2));
}

TEST_P(CallsTest, OperatorsThatAreGoneLeaveTheirPlaces) {
  EXPECT_EQ(RunForks(1, GetParam(),
                     [](rhComm_t comm, int) -> std::string {
                       float factor = 2;
                       const auto make = [&] {
                         rhRedOp_t op = rhSum;
                         rhRedOpCreatePreMulSum(&op, &factor, rhFloat32, rhScalarHostImmediate,
                                                comm);
                         return op;
                       };
                       const rhRedOp_t kept = make();
                       const rhRedOp_t first = make();
                       rhRedOpDestroy(first, comm);
                       factor = 3;
                       const rhRedOp_t again = make();
                       if (again != first || again == kept) return "another place";
                       float value = 1;
                       rhAllReduce(&value, &value, 1, rhFloat32, again, comm, nullptr);
                       return value == 3 ? "right" : "wrong factor";
                     }),
            Right(1));
}

INSTANTIATE_TEST_SUITE_P(Transports, CallsTest, ::testing::Values("tcp", "shm"));

}  // namespace
}  // namespace railhead
