// SPDX-License-Identifier: Apache-2.0
//
// Tests of rhConfig_t, of starts in the background, and of rhCommFinalize.
#include "runtime/comm/api/config.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/base/now.h"
#include "runtime/comm/api/handle.h"
#include "runtime/testing/http.h"
#include "runtime/testing/no_threads.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace {

// Called once, when this thread finds a mutex locked.
thread_local std::function<void()> when_locked;

}  // namespace

// In place of the C library's.
extern "C" int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  static const auto real = reinterpret_cast<decltype(&::pthread_mutex_trylock)>(
      ::dlsym(RTLD_NEXT, "pthread_mutex_trylock"));
  const int result = real(mutex);
  if (result == EBUSY && when_locked != nullptr) std::exchange(when_locked, nullptr)();
  return result;
}

namespace railhead {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::EndsWith;
using testing::Environment;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Process;
using testing::RunRanks;
using ::testing::StartsWith;

rhConfig_t Named(const char* name) {
  rhConfig_t config = RH_CONFIG_INITIALIZER;
  config.commName = name;
  return config;
}

// Returns "" or the error.
std::string Sum(rhComm_t comm, int ranks) {
  int one = 1;
  int sum = 0;
  if (rhAllReduce(&one, &sum, 1, rhInt32, rhSum, comm, nullptr) != rhSuccess) {
    return rhGetLastError(comm);
  }
  return sum == ranks ? "" : absl::StrCat("the sum is ", sum);
}

// Waits until the start has succeeded or failed.
rhResult_t Await(rhComm_t comm) {
  rhResult_t state = rhInProgress;
  while (state == rhInProgress) {
    absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(rhCommGetAsyncError(comm, &state), rhSuccess);
  }
  return state;
}

TEST(ReadConfigTest, NothingIsSetUnlessItIsSet) {
  EXPECT_TRUE(comm::ReadConfig(nullptr)->fields.empty());
  rhConfig_t config = RH_CONFIG_INITIALIZER;
  absl::StatusOr<comm::Config> read = comm::ReadConfig(&config);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->blocking.has_value());
  EXPECT_EQ(read->fields, config::Fields());

  config.blocking = 0;
  config.timeoutSeconds = 5;
  config.startTimeoutSeconds = 6;
  config.metrics = 0;
  config.commName = "tp";
  config.transport = "tcp";
  config.fallback = "fail";
  config.rails = "0-1";
  config.socketIfname = "lo";
  config.secretFile = "";
  read = comm::ReadConfig(&config);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->blocking, std::optional(false));
  EXPECT_EQ(read->fields, (config::Fields{{"timeoutSeconds", "5"},
                                          {"startTimeoutSeconds", "6"},
                                          {"metrics", "0"},
                                          {"commName", "tp"},
                                          {"transport", "tcp"},
                                          {"fallback", "fail"},
                                          {"rails", "0-1"},
                                          {"socketIfname", "lo"},
                                          {"secretFile", ""}}));
  config.blocking = 2;
  EXPECT_THAT(std::string(comm::ReadConfig(&config).status().message()),
              HasSubstr("blocking='2' is not allowed: set it to 0 or 1"));
}

TEST(ReadConfigTest, AnOlderProgramsStructEndsSooner) {
  rhConfig_t config;
  std::memset(&config, 0x5a, sizeof config);
  const rhConfig_t initial = RH_CONFIG_INITIALIZER;
  std::memcpy(&config, &initial, offsetof(rhConfig_t, secretFile));
  config.size = offsetof(rhConfig_t, secretFile);
  config.timeoutSeconds = 9;
  const absl::StatusOr<comm::Config> read = comm::ReadConfig(&config);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->fields, (config::Fields{{"timeoutSeconds", "9"}}));
}

TEST(ReadConfigTest, ANewerProgramMaySetWhatThereIs) {
  struct {
    rhConfig_t known = RH_CONFIG_INITIALIZER;
    std::array<unsigned char, 16> news{};
  } newer;
  newer.known.size = sizeof newer;
  newer.known.version = 20304;
  newer.known.commName = "tp";
  EXPECT_EQ(comm::ReadConfig(&newer.known)->fields, (config::Fields{{"commName", "tp"}}));
  newer.news[11] = 1;
  const absl::Status refused = comm::ReadConfig(&newer.known).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr(absl::StrCat("a field at byte ", sizeof(rhConfig_t) + 11)),
                    HasSubstr("the program's header (2.3.4)"), HasSubstr(RAILHEAD_VERSION)));
}

TEST(ReadConfigTest, WhatTheInitializerHasNotMadeIsRefused) {
  for (const auto& spoil : std::vector<std::function<void(rhConfig_t&)>>{
           [](rhConfig_t& config) { std::memset(&config, 0, sizeof config); },
           [](rhConfig_t& config) { std::memset(&config, 0x5a, sizeof config); },
           [](rhConfig_t& config) { config.magic ^= 1U; },
           [](rhConfig_t& config) { config.size = 8; },
           [](rhConfig_t& config) { config.size = sizeof config - 1; },
           [](rhConfig_t& config) { config.size = size_t{1} << 40U; }}) {
    rhConfig_t config = RH_CONFIG_INITIALIZER;
    spoil(config);
    EXPECT_THAT(std::string(comm::ReadConfig(&config).status().message()),
                HasSubstr("RH_CONFIG_INITIALIZER"));
  }
}

// ---- Ranks in threads ----

class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() {
    // Before any thread exists.
    for (const auto& [name, value] : Environment{{"RAILHEAD_SOCKET_IFNAME", "lo"},
                                                 {"RAILHEAD_METRICS_PORT", "0"},
                                                 {"RAILHEAD_RAILS_FILE", "/nonexistent/rails.json"},
                                                 {"RAILHEAD_TIMEOUT_SECONDS", "20"},
                                                 {"RAILHEAD_TRANSPORT", "tcp"},
                                                 {"RAILHEAD_LOG", "error"}}) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }

  // Test body of a rank; gets the result of its start, which has its own config.
  using Body = std::function<std::string(rhComm_t& comm, int rank, rhResult_t result)>;
  std::vector<std::string> Start(int world, const std::function<rhConfig_t(int rank)>& config,
                                 const Body& body) {
    rhUniqueId id;
    EXPECT_EQ(rhGetUniqueId(&id), rhSuccess) << rhGetLastError(nullptr);
    return RunRanks(world, [&](int rank) {
      rhComm_t comm = nullptr;
      rhConfig_t mine = config(rank);
      const rhResult_t result = rhCommInitRankConfig(&comm, world, id, rank, &mine);
      std::string text = body(comm, rank, result);
      EXPECT_EQ(rhCommDestroy(comm), rhSuccess);
      return text;
    });
  }
};

std::string ErrorOf(rhComm_t& /*comm*/, int /*rank*/, rhResult_t result) {
  return result == rhSuccess
             ? ""
             : absl::StrCat(rhGetErrorString(result), ": ", rhGetLastError(nullptr));
}

TEST_F(ConfigTest, ACommunicatorIsAsItsProgramWantsIt) {
  ::setenv("RAILHEAD_TRANSPORT", "shm", 1);
  for (const int world : {1, 2, 3, 5}) {
    const auto outputs = Start(
        world,
        [](int) {
          rhConfig_t config = Named("tp");
          config.transport = "tcp";
          config.socketIfname = "lo,lo";
          return config;
        },
        [world](rhComm_t comm, int, rhResult_t result) -> std::string {
          if (result != rhSuccess) return rhGetLastError(nullptr);
          if (std::string wrong = Sum(comm, world); !wrong.empty()) return wrong;
          rhCommInfo_t info{};
          info.struct_size = sizeof info;
          rhCommGetInfo(comm, &info);
          return absl::StrCat(info.transport, " ", info.rails);
        });
    EXPECT_THAT(outputs, Each("tcp 2")) << world;
  }
}

TEST_F(ConfigTest, WithoutAConfigTheEnvironmentSaysAll) {
  rhUniqueId id;
  ASSERT_EQ(rhGetUniqueId(&id), rhSuccess);
  rhComm_t comm = nullptr;
  EXPECT_EQ(rhCommInitRankConfig(&comm, 1, id, 0, nullptr), rhSuccess) << rhGetLastError(nullptr);
  EXPECT_EQ(rhCommDestroy(comm), rhSuccess);
}

TEST_F(ConfigTest, AWrongConfigIsRefusedAtOnce) {
  rhUniqueId id;
  ASSERT_EQ(rhGetUniqueId(&id), rhSuccess);
  rhComm_t comm = nullptr;
  rhConfig_t config = Named("tp");
  config.transport = "pigeon";
  EXPECT_EQ(rhCommInitRankConfig(&comm, 2, id, 1, &config), rhInvalidArgument);
  EXPECT_EQ(comm, nullptr);
  EXPECT_STREQ(
      rhGetLastError(nullptr),
      "rhCommInitRankConfig: transport='pigeon' is not allowed: set it to auto, verbs, tcp "
      "or shm");
  std::memset(&config, 0, sizeof config);
  EXPECT_EQ(rhCommInitRankConfig(&comm, 2, id, 1, &config), rhInvalidArgument);
  EXPECT_THAT(rhGetLastError(nullptr), HasSubstr("RH_CONFIG_INITIALIZER"));
  // Also where communicators are made of others, and those are as good as before.
  config = Named("tp");
  EXPECT_EQ(rhCommInitRankConfig(&comm, 1, id, 0, &config), rhSuccess);
  rhComm_t other = nullptr;
  config.blocking = 3;
  EXPECT_EQ(rhCommSplit(comm, 0, 0, &other, &config), rhInvalidArgument);
  EXPECT_THAT(rhGetLastError(comm), HasSubstr("rhCommSplit: blocking='3' is not allowed"));
  config = Named("a\nb");
  EXPECT_EQ(rhCommShrink(comm, nullptr, 0, &other, &config), rhInvalidArgument);
  EXPECT_THAT(rhGetLastError(comm), HasSubstr("rhCommShrink: commName='a\\nb' is not allowed"));
  EXPECT_EQ(Sum(comm, 1), "");
  EXPECT_EQ(rhCommDestroy(comm), rhSuccess);
}

TEST_F(ConfigTest, RanksThatSetDifferentThingsAreTold) {
  struct Case {
    std::function<void(rhConfig_t&)> set;  // on rank 2
    const char* text;
  };
  for (const Case& c : std::vector<Case>{
           {[](rhConfig_t& config) { config.commName = "dp"; },
            "rhConfig_t.commName: rank 0 has set it to 'tp', and rank 2 has set it to 'dp'"},
           {[](rhConfig_t& config) { config.timeoutSeconds = 5; },
            "rhConfig_t.timeoutSeconds: rank 0 has not set it, and rank 2 has set it to '5'"},
           {[](rhConfig_t& config) { config.rails = "0,2-3"; },
            "rhConfig_t.rails: rank 0 has not set it, and rank 2 has set it to '0,2,3'"},
           {[](rhConfig_t& config) { config.fallback = "allow"; },
            "rhConfig_t.fallback: rank 0 has not set it, and rank 2 has set it to 'allow'"},
           {[](rhConfig_t& config) { config.transport = "tcp"; },
            "rhConfig_t.transport: rank 0 has not set it, and rank 2 has set it to 'tcp'"}}) {
    const auto outputs = Start(
        3,
        [&c](int rank) {
          rhConfig_t config = Named("tp");
          if (rank == 2) c.set(config);
          return config;
        },
        ErrorOf);
    EXPECT_THAT(outputs,
                Each(AllOf(StartsWith("invalid argument: communicator '"), HasSubstr(c.text),
                           HasSubstr("set the same value on all ranks"))));
  }
}

TEST_F(ConfigTest, ACommunicatorHasATimeoutOfItsOwn) {
  const absl::Time start = MonotonicNow();
  rhUniqueId id;
  ASSERT_EQ(rhGetUniqueId(&id), rhSuccess);
  rhComm_t comm = nullptr;
  rhConfig_t config = Named("lonely");
  config.timeoutSeconds = 1;
  EXPECT_EQ(rhCommInitRankConfig(&comm, 2, id, 0, &config), rhRemoteError);
  EXPECT_THAT(rhGetLastError(nullptr),
              AllOf(StartsWith("communicator 'lonely': "), HasSubstr("rank 1")));
  EXPECT_LT(MonotonicNow() - start, absl::Seconds(18)) << "that of the environment is 20 s";
}

TEST_F(ConfigTest, ASecretFileOfItsOwnIsUsedAndNamed) {
  rhUniqueId id;
  ASSERT_EQ(rhGetUniqueId(&id), rhSuccess);
  rhComm_t comm = nullptr;
  rhConfig_t config = RH_CONFIG_INITIALIZER;
  config.secretFile = "/nonexistent/key";
  EXPECT_NE(rhCommInitRankConfig(&comm, 1, id, 0, &config), rhSuccess);
  EXPECT_THAT(rhGetLastError(nullptr), HasSubstr("rhConfig_t.secretFile=/nonexistent/key"));
  const std::string path = absl::StrCat(::testing::TempDir(), "/config-secret-", ::getpid());
  std::ofstream(path) << "0123456789abcdef\n";
  EXPECT_THAT(Start(
                  2,
                  [&path](int) {
                    rhConfig_t with = RH_CONFIG_INITIALIZER;
                    with.secretFile = path.c_str();
                    return with;
                  },
                  ErrorOf),
              Each(""));
  ::unlink(path.c_str());
}

// Children have their parent's settings, but for what they are given; three at once.
TEST_F(ConfigTest, FamiliesInheritAndThreeWorkAtOnce) {
  const auto outputs = Start(
      4, [](int) { return Named("world"); },
      [](rhComm_t comm, int rank, rhResult_t result) -> std::string {
        if (result != rhSuccess) return rhGetLastError(nullptr);
        rhComm_t pair = nullptr;
        rhComm_t all = nullptr;
        rhConfig_t config = Named("pair");
        config.timeoutSeconds = 7;
        if (rhCommSplit(comm, rank / 2, 0, &pair, &config) != rhSuccess ||
            rhCommSplit(comm, 0, -rank, &all, nullptr) != rhSuccess) {
          return rhGetLastError(comm);
        }
        std::string wrong;
        for (int i = 0; i < 20; ++i) {
          absl::StrAppend(&wrong, Sum(pair, 2), Sum(comm, 4), Sum(all, 4));
        }
        // Each has its name in its errors, and the parent goes on.
        if (rank == 0) {
          rhCommAbort(pair);
        } else {
          if (rank == 1) absl::StrAppend(&wrong, Sum(pair, 2));
          rhCommDestroy(pair);
        }
        if (rank == 2) {
          rhCommAbort(all);
        } else {
          absl::StrAppend(&wrong, Sum(all, 4));
          rhCommDestroy(all);
        }
        return absl::StrCat(wrong, Sum(comm, 4));
      });
  EXPECT_EQ(outputs[2], "");
  EXPECT_THAT(outputs[1], AllOf(HasSubstr("rank 1: communicator 'pair': all_reduce number"),
                                HasSubstr("rank 0: communicator 'pair': rhCommAbort was called")));
  for (const size_t rank : {0U, 1U, 3U}) {
    EXPECT_THAT(outputs[rank], HasSubstr("communicator 'world': rhCommAbort was called"));
  }
}

TEST_F(ConfigTest, ASplitWhoseConfigsDifferFailsOnAllRanksAndNamesBoth) {
  const auto outputs = Start(
      3, [](int) { return Named("world"); },
      [](rhComm_t comm, int rank, rhResult_t) -> std::string {
        rhComm_t part = nullptr;
        rhConfig_t config = Named(rank == 1 ? "b" : "a");
        EXPECT_EQ(rhCommSplit(comm, 0, rank, &part, &config), rhInvalidArgument);
        return rhGetLastError(comm);
      });
  EXPECT_THAT(outputs, Each(HasSubstr("rank 0 has set it to 'a', and rank 1 has set it to 'b'")));
}

TEST_F(ConfigTest, MetricsOfANamedCommunicatorHaveItsName) {
  const int port = testing::FreePort();
  ::setenv("RAILHEAD_METRICS_PORT", absl::StrCat(port).c_str(), 1);
  const auto outputs = Start(
      1, [](int) { return Named("tp"); },
      [port](rhComm_t comm, int, rhResult_t) -> std::string {
        rhComm_t unnamed = nullptr;
        rhComm_t hidden = nullptr;
        rhConfig_t config = Named("");
        EXPECT_EQ(rhCommSplit(comm, 0, 0, &unnamed, &config), rhSuccess);
        config = Named("hidden");
        config.metrics = 0;
        EXPECT_EQ(rhCommSplit(comm, 0, 0, &hidden, &config), rhSuccess);
        for (rhComm_t any : {comm, unnamed, hidden}) EXPECT_EQ(Sum(any, 1), "");
        std::string page = testing::HttpGet(port, "/metrics");
        rhCommDestroy(unnamed);
        rhCommDestroy(hidden);
        return page;
      });
  EXPECT_THAT(
      outputs[0],
      AllOf(::testing::ContainsRegex("operations_total.*\"all_reduce\".*size_class=\"<=4KiB\"} 1"),
            ::testing::ContainsRegex("operations_total.*\"all_reduce\".*,comm=\"tp\"} 1"),
            Not(HasSubstr("hidden")),
            // Reasons of degradation appear once for each rank.
            HasSubstr("railhead_degraded{job=\"default\",rank=\"0\",reason=")));
}

// ---- In the background ----

rhConfig_t InBackground() {
  rhConfig_t config = RH_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

TEST_F(ConfigTest, AStartGoesOnWithoutItsCaller) {
  for (const char* transport : {"tcp", "shm"}) {
    ::setenv("RAILHEAD_TRANSPORT", transport, 1);
    for (const int world : {1, 3}) {
      std::atomic<int> begun = 0;
      const auto outputs = Start(
          // Some wait and some do not.
          world,
          [](int rank) {
            rhConfig_t config = InBackground();
            config.blocking = rank == 2 ? 1 : 0;
            return config;
          },
          [&](rhComm_t comm, int rank, rhResult_t result) -> std::string {
            if (result != (rank == 2 ? rhSuccess : rhInProgress)) return "it has waited";
            ++begun;
            if (Await(comm) != rhSuccess) return rhGetLastError(comm);
            if (std::string wrong = Sum(comm, world); !wrong.empty()) return wrong;
            rhResult_t state = rhInternalError;
            rhCommGetAsyncError(comm, &state);
            return state == rhSuccess ? "" : "it is not well";
          });
      EXPECT_THAT(outputs, Each("")) << transport << " " << world;
    }
  }
}

TEST_F(ConfigTest, InProgressEveryOtherCallSaysSo) {
  rhUniqueId id;
  ASSERT_EQ(rhGetUniqueId(&id), rhSuccess);
  rhComm_t comm = nullptr;
  rhConfig_t config = InBackground();
  // The other rank never comes.
  ASSERT_EQ(rhCommInitRankConfig(&comm, 2, id, 0, &config), rhInProgress);
  ASSERT_NE(comm, nullptr);
  rhResult_t state = rhSuccess;
  EXPECT_EQ(rhCommGetAsyncError(comm, &state), rhSuccess);
  EXPECT_EQ(state, rhInProgress);

  int value = 0;
  float number = 1;
  void* handle = nullptr;
  rhWindow_t window = nullptr;
  rhComm_t other = nullptr;
  rhRedOp_t op = rhSum;
  rhStream_t stream = nullptr;
  std::array<char, 64> text{};
  rhCommInfo_t info{};
  info.struct_size = sizeof info;
  rhRailInfo_t rail{};
  rail.struct_size = sizeof rail;
  ASSERT_EQ(rhStreamCreate(&stream), rhSuccess);
  const std::vector<std::function<rhResult_t()>> calls = {
      [&] { return rhAllReduce(&value, &value, 1, rhInt32, rhSum, comm, nullptr); },
      [&] { return rhAllReduce(&value, &value, 1, rhInt32, rhSum, comm, stream); },
      [&] { return rhAllGather(&value, &value, 0, rhInt32, comm, nullptr); },
      [&] { return rhBroadcast(&value, &value, 1, rhInt32, 0, comm, nullptr); },
      [&] { return rhBarrier(comm, nullptr); },
      [&] { return rhSend(&value, 1, rhInt32, 1, comm, nullptr); },
      [&] { return rhRecv(&value, 1, rhInt32, 1, comm, nullptr); },
      [&] { return rhCommCount(comm, &value); },
      [&] { return rhCommUserRank(comm, &value); },
      [&] { return rhCommSplit(comm, 0, 0, &other, nullptr); },
      [&] { return rhCommShrink(comm, nullptr, 0, &other, nullptr); },
      [&] { return rhCommGrow(comm, 3, id, -1, &other, nullptr); },
      [&] { return rhCommGetInfo(comm, &info); },
      [&] { return rhCommRailInfo(comm, 0, &rail); },
      [&] { return rhCommExplain(comm, "all_reduce", 8, text.data(), text.size()); },
      [&] { return rhCommRegister(comm, &value, sizeof value, &handle); },
      [&] { return rhCommDeregister(comm, handle); },
      [&] { return rhCommWindowRegister(comm, &value, sizeof value, &window, 0); },
      [&] { return rhCommWindowDeregister(comm, window); },
      [&] { return rhRedOpCreatePreMulSum(&op, &number, rhFloat32, rhScalarDevice, comm); },
      [&] { return rhRedOpDestroy(op, comm); },
      [&] { return rhCommFinalize(comm); },
      [&] { return rhCommDestroy(comm); }};
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i](), rhInvalidUsage) << i;
    EXPECT_THAT(rhGetLastError(comm),
                AllOf(HasSubstr("rhCommGetAsyncError"), HasSubstr("rhCommAbort")))
        << i;
  }
  const absl::Time start = MonotonicNow();
  EXPECT_EQ(rhCommAbort(comm), rhSuccess);
  EXPECT_LT(MonotonicNow() - start, absl::Seconds(10))
      << "it would wait for the other rank for 20 s";
  EXPECT_EQ(rhStreamDestroy(stream), rhSuccess);
}

TEST_F(ConfigTest, AStartThatFailsSaysWhy) {
  rhUniqueId id;
  ASSERT_EQ(rhGetUniqueId(&id), rhSuccess);
  rhComm_t comm = nullptr;
  rhConfig_t config = InBackground();
  config.startTimeoutSeconds = 1;
  ASSERT_EQ(rhCommInitRankConfig(&comm, 2, id, 0, &config), rhInProgress);
  EXPECT_EQ(Await(comm), rhRemoteError);
  EXPECT_THAT(rhGetLastError(comm), HasSubstr("rank 1"));
  EXPECT_EQ(rhBarrier(comm, nullptr), rhInvalidUsage);
  EXPECT_THAT(rhGetLastError(comm), AllOf(HasSubstr("could not be created"), HasSubstr("rank 1")));
  rhResult_t state = rhSuccess;
  EXPECT_EQ(rhCommGetAsyncError(comm, &state), rhSuccess);
  EXPECT_EQ(state, rhRemoteError);
  EXPECT_EQ(rhCommDestroy(comm), rhSuccess);
}

// At any moment of the start: the rank that aborts comes back, and the other one is not left alone.
TEST_F(ConfigTest, AStartCanBeAbortedAtAnyMoment) {
  for (const char* transport : {"tcp", "shm"}) {
    ::setenv("RAILHEAD_TRANSPORT", transport, 1);
    for (const int microseconds : {0, 300, 1000, 3000, 10000, 30000}) {
      for (const int aborts : {0, 1}) {
        rhUniqueId id;
        ASSERT_EQ(rhGetUniqueId(&id), rhSuccess);
        const auto outputs = RunRanks(2, [&](int rank) -> std::string {
          rhComm_t comm = nullptr;
          rhConfig_t config = InBackground();
          config.startTimeoutSeconds = 1;
          if (rhCommInitRankConfig(&comm, 2, id, rank, &config) != rhInProgress) return "it waited";
          if (rank == aborts) {
            absl::SleepFor(absl::Microseconds(microseconds));
            return rhCommAbort(comm) == rhSuccess ? "" : "no abort";
          }
          rhResult_t state = Await(comm);
          // It may have been made before.
          if (state == rhSuccess) state = rhBarrier(comm, nullptr);
          rhCommDestroy(comm);
          return state == rhRemoteError ? "" : absl::StrCat("result ", state);
        });
        EXPECT_THAT(outputs, Each(""))
            << transport << ": rank " << aborts << " after " << microseconds << " us";
      }
    }
  }
}

// The others call it when rank 0 has seen that it has not waited for them.
TEST_F(ConfigTest, OneMadeOfAnotherInTheBackground) {
  for (const char* transport : {"tcp", "shm"}) {
    ::setenv("RAILHEAD_TRANSPORT", transport, 1);
    std::atomic<bool> seen = false;
    const auto outputs = Start(
        4, [](int) { return InBackground(); },
        [&seen](rhComm_t comm, int rank, rhResult_t) -> std::string {
          if (Await(comm) != rhSuccess) return rhGetLastError(comm);
          while (rank != 0 && !seen) absl::SleepFor(absl::Milliseconds(1));
          // Rank 3 gets none; that the parent does not wait is inherited.
          const int color = rank == 3 ? RH_SPLIT_NOCOLOR : 0;
          rhComm_t part = nullptr;
          if (rhCommSplit(comm, color, -rank, &part, nullptr) != rhInProgress) return "it waited";
          if ((part == nullptr) != (rank == 3)) return "whose is it?";
          if (rank == 0) {
            for (rhComm_t any : {comm, part}) {
              rhResult_t state = rhSuccess;
              rhCommGetAsyncError(any, &state);
              if (state != rhInProgress) return "not in progress";
              if (rhBarrier(any, nullptr) != rhInvalidUsage) return "no error";
              EXPECT_THAT(
                  rhGetLastError(any),
                  HasSubstr("poll rhCommGetAsyncError until it no longer returns rhInProgress"));
              if (rhCommDestroy(any) != rhInvalidUsage) return "destroyed";
            }
            seen = true;
          }
          if (part != nullptr && Await(part) != rhSuccess) return rhGetLastError(part);
          if (Await(comm) != rhSuccess) return rhGetLastError(comm);
          std::string wrong = part == nullptr ? "" : Sum(part, 3);
          absl::StrAppend(&wrong, Sum(comm, 4));
          // One that is awaited, though its parent is not, and one without the last rank.
          rhConfig_t config = RH_CONFIG_INITIALIZER;
          config.blocking = 1;
          rhComm_t all = nullptr;
          if (rhCommSplit(comm, 0, 0, &all, &config) != rhSuccess) return rhGetLastError(comm);
          absl::StrAppend(&wrong, Sum(all, 4));
          rhComm_t fewer = nullptr;
          const int last = 3;
          if (rank != last) {
            if (rhCommShrink(comm, &last, 1, &fewer, nullptr) != rhInProgress) return "it waited";
            if (Await(fewer) != rhSuccess) return rhGetLastError(fewer);
            absl::StrAppend(&wrong, Sum(fewer, 3));
            Await(comm);
          }
          for (rhComm_t any : {part, all, fewer}) rhCommDestroy(any);
          return wrong;
        });
    EXPECT_THAT(outputs, Each("")) << transport;
  }
}

TEST_F(ConfigTest, WhetherACallBlocksIsInItsConfigOrInTheCommunicator) {
  constexpr int kUnset = RH_CONFIG_UNDEF_INT;
  for (const int of_parent : {0, 1, kUnset}) {
    for (const int of_call : {0, 1, kUnset}) {
      const bool blocks = of_call == kUnset ? of_parent != 0 : of_call == 1;
      const rhResult_t expected = blocks ? rhSuccess : rhInProgress;
      const auto outputs = Start(
          1,
          [of_parent](int) {
            rhConfig_t config = RH_CONFIG_INITIALIZER;
            config.blocking = of_parent;
            return config;
          },
          [&](rhComm_t comm, int, rhResult_t) -> std::string {
            if (Await(comm) != rhSuccess) return rhGetLastError(comm);
            rhConfig_t config = RH_CONFIG_INITIALIZER;
            config.blocking = of_call;
            rhComm_t part = nullptr;
            EXPECT_EQ(rhCommSplit(comm, 0, 0, &part, &config), expected);
            if (Await(part) != rhSuccess) return rhGetLastError(part);
            EXPECT_EQ(rhCommFinalize(part), expected) << "as it was made";
            Await(part);
            return rhCommDestroy(part) == rhSuccess ? "" : "not destroyed";
          });
      EXPECT_THAT(outputs, Each("")) << of_parent << ", " << of_call;
    }
  }
}

// When the new communicator is reported ready, its parent accepts calls again.
TEST_F(ConfigTest, OneMadeOfAnotherIsThereAfterItsParentIsFree) {
  std::atomic<bool> held = false;
  const auto outputs = Start(
      2, [](int) { return Named("tp"); },
      [&held](rhComm_t comm, int rank, rhResult_t) -> std::string {
        while (rank == 1 && !held) absl::SleepFor(absl::Milliseconds(1));
        rhConfig_t config = InBackground();
        rhComm_t part = nullptr;
        if (rhCommSplit(comm, 0, 0, &part, &config) != rhInProgress) return "it waited";
        rhResult_t state = rhInProgress;
        if (rank == 0) {
          // The parent cannot become free.
          const std::lock_guard<std::mutex> hold(comm->state);
          held = true;
          const absl::Time end = MonotonicNow() + absl::Milliseconds(300);
          while (MonotonicNow() < end && state == rhInProgress) {
            absl::SleepFor(absl::Milliseconds(1));
            rhCommGetAsyncError(part, &state);
          }
        }
        if (state != rhInProgress) return "it is there before its parent is free";
        if (Await(part) != rhSuccess) return rhGetLastError(part);
        const std::string wrong = Sum(comm, 2);
        return rhCommDestroy(part) == rhSuccess ? wrong : "not destroyed";
      });
  EXPECT_THAT(outputs, Each(""));
}

// While the others have not even called it; the parent goes on.
TEST_F(ConfigTest, OneMadeOfAnotherIsAbortedInProgress) {
  std::atomic<bool> gone = false;
  const auto outputs = Start(
      3, [](int) { return InBackground(); },
      [&gone](rhComm_t comm, int rank, rhResult_t) -> std::string {
        if (Await(comm) != rhSuccess) return rhGetLastError(comm);
        while (rank != 0 && !gone) absl::SleepFor(absl::Milliseconds(1));
        rhConfig_t config = RH_CONFIG_INITIALIZER;
        config.startTimeoutSeconds = 1;
        rhComm_t part = nullptr;
        if (rhCommSplit(comm, 0, 0, &part, &config) != rhInProgress) return "it waited";
        if (rank == 0) {
          if (rhCommAbort(part) != rhSuccess) return "no abort";
          gone = true;
        } else {
          if (Await(part) != rhRemoteError) return "made without rank 0";
          rhCommDestroy(part);
        }
        return Await(comm) == rhSuccess ? Sum(comm, 3) : rhGetLastError(comm);
      });
  EXPECT_THAT(outputs, Each(""));
}

TEST_F(ConfigTest, AnAbortEndsWhatIsMadeOfACommunicator) {
  const auto outputs = Start(
      2, [](int) { return InBackground(); },
      [](rhComm_t& comm, int rank, rhResult_t) -> std::string {
        rhResult_t state = Await(comm);
        // Rank 1 never calls it.
        if (rank == 1) {
          while (state == rhSuccess) rhCommGetAsyncError(comm, &state);
          return state == rhRemoteError ? "" : "another error";
        }
        if (state != rhSuccess) return rhGetLastError(comm);
        rhComm_t part = nullptr;
        if (rhCommSplit(comm, 0, 0, &part, nullptr) != rhInProgress) return "it waited";
        if (rhCommAbort(comm) != rhSuccess) return "no abort";
        comm = nullptr;
        if (Await(part) != rhRemoteError) return "made";
        const std::string why = rhGetLastError(part);
        return rhCommDestroy(part) == rhSuccess && !why.empty() ? "" : "not destroyed";
      });
  EXPECT_THAT(outputs, Each(""));
}

TEST_F(ConfigTest, AnEndIsPeacefulAndFinal) {
  for (const char* transport : {"tcp", "shm"}) {
    ::setenv("RAILHEAD_TRANSPORT", transport, 1);
    for (const int blocking : {0, 1}) {
      const auto outputs = Start(
          3,
          [blocking](int) {
            rhConfig_t config = RH_CONFIG_INITIALIZER;
            config.blocking = blocking;
            return config;
          },
          [blocking](rhComm_t comm, int rank, rhResult_t) -> std::string {
            if (Await(comm) != rhSuccess) return rhGetLastError(comm);
            // Calls on a stream run first.
            rhStream_t stream = nullptr;
            rhStreamCreate(&stream);
            int one = 1;
            int sum = 0;
            rhAllReduce(&one, &sum, 1, rhInt32, rhSum, comm, stream);
            // One rank only leaves.
            std::string text;
            if (rank != 2) {
              const rhResult_t ended = rhCommFinalize(comm);
              if (ended != (blocking == 1 ? rhSuccess : rhInProgress)) return rhGetLastError(comm);
              if (Await(comm) != rhSuccess) return rhGetLastError(comm);
              int count = 0;
              if (rhCommCount(comm, &count) != rhSuccess || count != 3) return "not to be asked";
              if (rhBarrier(comm, nullptr) != rhInvalidUsage) return "not ended";
              text = rhGetLastError(comm);
              if (rhCommFinalize(comm) != rhInvalidUsage) return "ended twice";
            }
            rhStreamDestroy(stream);
            return absl::StrCat(text, sum);
          });
      const std::string refused = "rhBarrier: rhCommFinalize was called; destroy the communicator3";
      EXPECT_EQ(outputs, (std::vector<std::string>{refused, refused, "3"})) << transport;
    }
  }
}

// The last one ends while rhCommFinalize looks whether the communicator is in use.
TEST_F(ConfigTest, AnEndRightAfterACallOnAStreamIsNoError) {
  std::atomic<bool> looking = false;
  const auto outputs = Start(
      2, [](int) { return Named("tp"); },
      [&looking](rhComm_t comm, int rank, rhResult_t) -> std::string {
        if (rank == 1) {
          while (!looking) absl::SleepFor(absl::Milliseconds(1));
          if (rhBarrier(comm, nullptr) != rhSuccess) return rhGetLastError(comm);
        } else {
          rhStream_t stream = nullptr;
          rhStreamCreate(&stream);
          rhBarrier(comm, stream);
          // Until it runs.
          while (rhBarrier(comm, nullptr) != rhInvalidUsage ||
                 !absl::StrContains(rhGetLastError(comm), "another thread is using")) {
            absl::SleepFor(absl::Milliseconds(1));
          }
          when_locked = [&] {
            looking = true;
            rhStreamDestroy(stream);
          };
        }
        return rhCommFinalize(comm) == rhSuccess ? "" : rhGetLastError(comm);
      });
  EXPECT_TRUE(looking);
  EXPECT_THAT(outputs, Each(""));
}

TEST_F(ConfigTest, AnEndThatOthersDoNotShareIsAnErrorInTime) {
  std::atomic<bool> over = false;
  const auto outputs = Start(
      2,
      [](int) {
        rhConfig_t config = Named("tp");
        config.timeoutSeconds = 4;
        config.startTimeoutSeconds = 20;
        return config;
      },
      [&over](rhComm_t comm, int rank, rhResult_t) -> std::string {
        if (rank == 1) {
          while (!over) absl::SleepFor(absl::Milliseconds(1));
          return "";
        }
        const rhResult_t result = rhCommFinalize(comm);
        rhResult_t state = rhSuccess;
        rhCommGetAsyncError(comm, &state);
        over = true;
        return absl::StrCat(result == rhRemoteError && state == rhRemoteError ? "" : "no error: ",
                            rhGetLastError(comm));
      });
  EXPECT_EQ(outputs[0],
            "rank 0: communicator 'tp': other ranks have neither finalized nor destroyed it within "
            "4s");
}

TEST_F(ConfigTest, AnEndIsAborted) {
  std::atomic<bool> made = false;
  std::atomic<bool> over = false;
  const auto outputs = Start(
      2, [](int) { return InBackground(); },
      [&](rhComm_t& comm, int rank, rhResult_t) -> std::string {
        if (Await(comm) != rhSuccess) return rhGetLastError(comm);
        if (rank == 1) {
          made = true;
          while (!over) absl::SleepFor(absl::Milliseconds(1));
          return "";
        }
        while (!made) absl::SleepFor(absl::Milliseconds(1));
        if (rhCommFinalize(comm) != rhInProgress) return "it has waited";
        if (rhCommDestroy(comm) != rhInvalidUsage) return "destroyed";
        const rhResult_t aborted = rhCommAbort(comm);
        comm = nullptr;
        over = true;
        return aborted == rhSuccess ? "" : "not aborted";
      });
  EXPECT_THAT(outputs, Each(""));
}

// It waits for a call that is queued behind one of another communicator, which nobody joins.
TEST_F(ConfigTest, AnEndBehindAnotherCommunicatorIsAborted) {
  std::atomic<bool> over = false;
  const auto outputs = Start(
      2, [](int) { return InBackground(); },
      [&over](rhComm_t& comm, int rank, rhResult_t) -> std::string {
        if (Await(comm) != rhSuccess) return rhGetLastError(comm);
        rhComm_t queued = nullptr;
        if (rhCommSplit(comm, 0, 0, &queued, nullptr) != rhInProgress) return "it has waited";
        if (Await(queued) != rhSuccess) return rhGetLastError(queued);
        if (Await(comm) != rhSuccess) return rhGetLastError(comm);
        if (rank == 1) {
          while (!over) absl::SleepFor(absl::Milliseconds(1));
          return rhCommAbort(queued) == rhSuccess ? "" : "not aborted";
        }
        rhStream_t stream = nullptr;
        rhStreamCreate(&stream);
        rhBarrier(comm, stream);
        rhBarrier(queued, stream);
        if (rhCommFinalize(queued) != rhInProgress) return rhGetLastError(queued);
        // Until its thread waits.
        absl::SleepFor(absl::Milliseconds(50));
        const bool aborted = rhCommAbort(queued) == rhSuccess && rhCommAbort(comm) == rhSuccess;
        comm = nullptr;
        rhStreamDestroy(stream);
        over = true;
        return aborted ? "" : "not aborted";
      });
  EXPECT_THAT(outputs, Each(""));
}

TEST_F(ConfigTest, AnEndWithoutAThreadChangesNothing) {
  const auto outputs = Start(
      1, [](int) { return InBackground(); },
      [](rhComm_t& comm, int, rhResult_t) -> std::string {
        if (Await(comm) != rhSuccess) return rhGetLastError(comm);
        {
          const testing::NoThreads no_threads;
          if (rhCommFinalize(comm) != rhSystemError) return "no error";
        }
        const std::string text = absl::StrCat(rhGetLastError(comm), "; ", Sum(comm, 1));
        const rhResult_t aborted = rhCommAbort(comm);
        comm = nullptr;
        return aborted == rhSuccess ? text : "not aborted";
      });
  EXPECT_THAT(outputs, Each(AllOf(Not(StartsWith("; ")), EndsWith("; "))));
}

// ---- Ranks in processes ----

TEST(ConfigProcessesTest, ARankThatDiesEndsTheOthersEnd) {
  rhUniqueId id;
  ::setenv("RAILHEAD_SOCKET_IFNAME", "lo", 1);
  ASSERT_EQ(rhGetUniqueId(&id), rhSuccess);
  std::vector<Process> processes;
  for (int rank = 0; rank < 3; ++rank) {
    processes.push_back(
        Process::Fork(testing::RankEnvironment(rank, 3, 1), [&id, rank]() -> std::string {
          rhComm_t comm = nullptr;
          rhConfig_t config = Named("tp");
          if (rhCommInitRankConfig(&comm, 3, id, rank, &config) != rhSuccess) {
            return rhGetLastError(nullptr);
          }
          if (rhBarrier(comm, nullptr) != rhSuccess) return rhGetLastError(comm);
          if (rank == 1) ::raise(SIGKILL);
          if (rhCommFinalize(comm) != rhRemoteError) return "no error";
          return rhGetLastError(comm);
        }));
  }
  const absl::Time deadline = MonotonicNow() + absl::Seconds(30);
  for (const int rank : {0, 2}) {
    EXPECT_THAT(processes[static_cast<size_t>(rank)].Wait(deadline).output,
                AllOf(HasSubstr("communicator 'tp'"), HasSubstr("rank 1 (pod p1)")));
  }
}

}  // namespace
}  // namespace railhead
