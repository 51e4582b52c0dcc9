// SPDX-License-Identifier: Apache-2.0
//
// Ranks as processes during autotuning: every call must return correct results, and all ranks must
// learn the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/testing/forked_ranks.h"
#include "runtime/tuner/algorithm_trial.h"

namespace railhead {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunForks;

constexpr int kTrial =
    static_cast<int>(tuner::AlgorithmTrial::kMostWays * tuner::AlgorithmTrial::kTurn *
                     tuner::AlgorithmTrial::kRounds);

std::string Explain(rhComm_t comm, const char* collective, size_t bytes) {
  std::string text(4096, '\0');
  if (rhCommExplain(comm, collective, bytes, text.data(), text.size()) != rhSuccess) {
    return rhGetLastError(comm);
  }
  return text.c_str();
}

// Sums numbers that follow from rank, place and call. "" if it is right.
std::string SumRight(rhComm_t comm, int rank, int ranks, size_t count, int call) {
  std::vector<int64_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = (rank + 1) * (call + static_cast<int64_t>(i));
  if (rhAllReduce(values.data(), values.data(), count, rhInt64, rhSum, comm, nullptr) !=
      rhSuccess) {
    return rhGetLastError(comm);
  }
  for (size_t i = 0; i < count; ++i) {
    const int64_t sum = int64_t{ranks} * (ranks + 1) / 2 * (call + static_cast<int64_t>(i));
    if (values[i] != sum) return absl::StrCat("wrong sum in call ", call, " at ", i);
  }
  return "";
}

// Through several trials: sizes differ from call to call, and so do the classes.
TEST(LearningTest, CallsAreRightInAndAfterTrials) {
  constexpr int kRanks = 4;
  const auto outputs = RunForks(kRanks, "tcp", [](rhComm_t comm, int rank) -> std::string {
    if (std::string text = Explain(comm, "all_reduce", 64); text.find("estimated: ") == text.npos) {
      return text;
    }
    std::mt19937 random(1);
    const int calls = static_cast<int>(2 * tuner::AlgorithmTrial::kShortestRest) + 4 * kTrial;
    for (int call = 0; call < calls; ++call) {
      const size_t count = random() % 50 == 0 ? 1 + random() % 20000 : 5 + random() % 4;
      std::string wrong = SumRight(comm, rank, kRanks, count, call);
      if (!wrong.empty()) return wrong;
    }
    return Explain(comm, "all_reduce", 64);
  });
  EXPECT_THAT(outputs, Each(AllOf(HasSubstr("learnt: the fastest in calls of up to 64 bytes"),
                                  HasSubstr(" us measured"))));
  EXPECT_THAT(outputs, Each(outputs[0]));
}

TEST(LearningTest, WhatIsLaidDownIsNotLearnt) {
  ::setenv("RAILHEAD_ALGO", "all_reduce=double_tree", 1);
  const auto outputs = RunForks(3, "tcp", [](rhComm_t comm, int rank) -> std::string {
    for (int call = 0; call < 2 * kTrial; ++call) {
      std::string wrong = SumRight(comm, rank, 3, 10, call);
      if (!wrong.empty()) return wrong;
    }
    return Explain(comm, "all_reduce", 80);
  });
  ::unsetenv("RAILHEAD_ALGO");
  EXPECT_THAT(outputs, Each(AllOf(HasSubstr("double_tree, set by RAILHEAD_ALGO"),
                                  Not(HasSubstr("measured")))));
}

// Each on a stream of its own, and in groups: every rank has another order among communicators.
TEST(LearningTest, SeveralCommunicatorsLearnSideBySide) {
  constexpr int kRanks = 4;
  constexpr size_t kCalls = 3 * kTrial;
  const auto outputs = RunForks(kRanks, "tcp", [](rhComm_t comm, int rank) -> std::string {
    std::array<rhComm_t, 3> comms = {comm, nullptr, nullptr};
    if (rhCommSplit(comm, rank / 2, 0, &comms[1], nullptr) != rhSuccess ||
        rhCommSplit(comm, rank % 2, 0, &comms[2], nullptr) != rhSuccess) {
      return rhGetLastError(comm);
    }
    std::array<rhStream_t, 3> streams{};
    for (rhStream_t& stream : streams) rhStreamCreate(&stream);
    // Sums of ones.
    std::array<std::vector<std::array<int, 8>>, 3> values;
    for (auto& calls : values) calls.assign(kCalls, {1, 1, 1, 1, 1, 1, 1, 1});
    std::mt19937 random(static_cast<unsigned>(rank));
    std::array<size_t, 3> next{};
    while (next != std::array{kCalls, kCalls, kCalls}) {
      rhGroupStart();
      for (int i = 0; i < 4; ++i) {
        const size_t which = random() % 3;
        if (next[which] == kCalls) continue;
        int* const data = values[which][next[which]++].data();
        rhAllReduce(data, data, 8, rhInt32, rhSum, comms[which], streams[which]);
      }
      if (rhGroupEnd() != rhSuccess) return "the group failed";
    }
    std::string text;
    for (size_t which = 0; which < comms.size(); ++which) {
      if (rhStreamSynchronize(streams[which]) != rhSuccess) return rhGetLastError(comms[which]);
      const int ranks = which == 0 ? kRanks : 2;
      for (const auto& call : values[which]) {
        for (const int value : call) {
          if (value != ranks) return absl::StrCat("wrong sum of ", ranks, " ranks: ", value);
        }
      }
      const bool learnt = Explain(comms[which], "all_reduce", 32).find("learnt: ") != text.npos;
      absl::StrAppend(&text, learnt ? "learnt " : "not learnt ");
    }
    for (rhStream_t stream : streams) rhStreamDestroy(stream);
    rhCommDestroy(comms[1]);
    rhCommDestroy(comms[2]);
    return text;
  });
  EXPECT_EQ(outputs, std::vector<std::string>(kRanks, "learnt learnt learnt "));
}

// At any moment of a trial, also where ranks agree on what they have measured.
TEST(LearningTest, AnAbortDuringATrialIsWhatTheOthersAreTold) {
  constexpr int kRanks = 4;
  for (int calls = 0; calls < kTrial; calls += 2) {
    const auto outputs = RunForks(kRanks, "tcp", [&](rhComm_t& comm, int rank) -> std::string {
      for (int call = 0; call < 2 * kTrial; ++call) {
        if (rank == 1 && call == calls) {
          rhCommAbort(comm);
          comm = nullptr;
          return "rhCommAbort was called";
        }
        if (std::string wrong = SumRight(comm, rank, kRanks, 8, call); !wrong.empty()) {
          return wrong;
        }
      }
      return "nobody was told";
    });
    EXPECT_THAT(outputs, Each(HasSubstr("rhCommAbort was called"))) << calls;
  }
}

}  // namespace
}  // namespace railhead
