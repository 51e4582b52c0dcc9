// SPDX-License-Identifier: Apache-2.0
//
// Ranks as processes that join by their environment: what they share on one machine, their
// settings, limits, errors and metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/ranks_by_environment_for_test.h"
#include "runtime/testing/http.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using testing::Environment;
using testing::FreePort;
using ::testing::HasSubstr;

TEST(ProcessesTest, ReduceByEnvironment) {
  for (const int world : {1, 2, 3, 4}) {
    const std::vector<std::string> outputs = RunForks(Environments(world), [world](int rank) {
      rhComm_t comm = nullptr;
      std::string error = Join(&comm);
      if (!error.empty()) return error;
      std::vector<float> values(250001, static_cast<float>(rank));
      error = Reduce(comm, values);
      if (!error.empty()) return error;
      for (const float value : values) {
        if (value != static_cast<float>(world * (world - 1) / 2)) return std::string("wrong");
      }
      rhCommDestroy(comm);
      return std::string("right");
    });
    EXPECT_EQ(outputs, std::vector<std::string>(static_cast<size_t>(world), "right"));
  }
}

TEST(ProcessesTest, RanksOfOnePodShareMemoryUnlessSomebodyWantsOtherwise) {
  const auto transports = [](const std::vector<Environment>& environments) {
    return RunForks(environments, [](int rank) {
      rhComm_t comm = nullptr;
      std::string error = Join(&comm);
      std::vector<float> values(5000, static_cast<float>(rank));
      if (error.empty()) error = Reduce(comm, values);
      if (!error.empty()) return error;
      rhCommInfo_t info{};
      info.struct_size = sizeof info;
      rhRailInfo_t rail{};
      rail.struct_size = sizeof rail;
      if (rhCommGetInfo(comm, &info) != rhSuccess || rhCommRailInfo(comm, 0, &rail) != rhSuccess) {
        return std::string(rhGetLastError(comm));
      }
      rhCommDestroy(comm);
      return absl::StrCat(info.transport, " ", rail.device, info.degraded != 0 ? " degraded" : "",
                          " ", std::string_view(rail.transport) == "shm" ? rail.tx_bytes : 0);
    });
  };
  // Both ways each byte once: 2(n-1)/n of the values.
  EXPECT_EQ(transports(Environments(2, {{"RAILHEAD_TRANSPORT", "auto"}})),
            std::vector<std::string>(2, "shm memory 20000"));
  std::vector<Environment> mixed = Environments(2, {{"RAILHEAD_TRANSPORT", "auto"}});
  mixed[1]["RAILHEAD_TRANSPORT"] = "tcp";
  EXPECT_EQ(transports(mixed), std::vector<std::string>(2, "tcp lo 0"));
  mixed[0]["RAILHEAD_TRANSPORT"] = "shm";
  for (const std::string& output : transports(mixed)) {
    EXPECT_THAT(output, HasSubstr("shared memory was chosen (RAILHEAD_TRANSPORT=shm on rank 0 "
                                  "(pod p0)) but cannot be used: rank 1 (pod p1): "
                                  "RAILHEAD_TRANSPORT=tcp is set there"));
  }
}

// Prometheus asks one port of the pod.
TEST(ProcessesTest, RanksOfOnePodShareAMetricsPage) {
  const int port = railhead::testing::FreePort();
  const std::vector<std::string> pages = RunForks(
      Environments(3, {{"RAILHEAD_METRICS_PORT", absl::StrCat(port)}, {"RAILHEAD_POD", "pod"}}),
      [port](int) {
        rhComm_t comm = nullptr;
        std::string error = Join(&comm);
        std::vector<float> values(1000);
        if (error.empty()) error = Reduce(comm, values);
        if (!error.empty()) return error;
        std::string page = railhead::testing::HttpGet(port, "/metrics");
        error = Reduce(comm, values);
        rhCommDestroy(comm);
        return error.empty() ? page : error;
      });
  for (const std::string& page : pages) {
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_THAT(
          page,
          AllOf(HasSubstr(absl::StrCat("railhead_runtime_info{job=\"default\",rank=\"", rank)),
                HasSubstr(absl::StrCat("railhead_rail_transmit_bytes_total{job=\"default\",rank=\"",
                                       rank))));
    }
  }
}

// A signal that the program's threads block waits for them.
TEST(ProcessesTest, TheLibrarysThreadsTakeNoSignals) {
  std::vector<Environment> environments = Environments(2);
  for (Environment& environment : environments) {
    environment["RAILHEAD_METRICS_PORT"] = absl::StrCat(testing::FreePort());
  }
  const auto outputs = RunForks(environments, [](int) -> std::string {
    rhComm_t comm = nullptr;
    if (std::string error = Join(&comm); !error.empty()) return error;
    rhStream_t stream = nullptr;
    rhStreamCreate(&stream);
    sigset_t terminate;
    sigemptyset(&terminate);
    sigaddset(&terminate, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &terminate, nullptr);
    ::kill(::getpid(), SIGTERM);
    const timespec longest = {10, 0};
    const bool waited = sigtimedwait(&terminate, nullptr, &longest) == SIGTERM;
    struct sigaction pipe = {};
    ::sigaction(SIGPIPE, nullptr, &pipe);
    rhStreamDestroy(stream);
    rhCommDestroy(comm);
    return absl::StrCat(waited ? "waited" : "lost", pipe.sa_handler == SIG_DFL ? "" : ", ignored");
  });
  EXPECT_THAT(outputs, Each("waited"));
}

TEST(ProcessesTest, APinThatCannotBeFollowedIsAnErrorOnAllRanks) {
  for (const auto& [transport, pin] :
       {std::pair("tcp", "all_reduce=hierarchical"), std::pair("tcp", "all_gather=hierarchical"),
        std::pair("shm", "all_reduce=ring"), std::pair("shm", "all_gather=bruck")}) {
    const auto outputs = RunForks(
        Environments(3, {{"RAILHEAD_ALGO", pin}, {"RAILHEAD_TRANSPORT", transport}}), [](int) {
          rhComm_t comm = nullptr;
          return Join(&comm);
        });
    EXPECT_THAT(outputs, Each(AllOf(HasSubstr("invalid argument"), HasSubstr("RAILHEAD_ALGO"),
                                    HasSubstr(pin), HasSubstr("cannot be followed"))));
  }
}

TEST(ProcessesTest, ARankWithTooFewDescriptorsSaysHowManyItNeeds) {
  const auto outputs = RunForks(
      Environments(3, {{"RAILHEAD_SOCKET_IFNAME", "lo,lo,lo,lo,lo,lo,lo,lo"}}), [](int rank) {
        const rlimit limit = {20, 20};
        if (rank == 1) ::setrlimit(RLIMIT_NOFILE, &limit);
        rhComm_t comm = nullptr;
        return Join(&comm);
      });
  EXPECT_THAT(outputs,
              Each(AllOf(HasSubstr("rank 1 (pod p1)"),
                         HasSubstr("Too many open files (EMFILE: this process may have 20"),
                         HasSubstr("it needs about "))));
}

// Most limits are low by default only.
TEST(ProcessesTest, ARankRaisesItsLimitOfDescriptors) {
  const auto outputs = RunForks(
      Environments(3, {{"RAILHEAD_SOCKET_IFNAME", "lo,lo,lo,lo,lo,lo,lo,lo"}}), [](int rank) {
        const rlimit limit = {20, 1000};
        if (rank == 1) ::setrlimit(RLIMIT_NOFILE, &limit);
        rhComm_t comm = nullptr;
        std::string error = Join(&comm);
        std::vector<float> values(1000);
        if (error.empty()) error = Reduce(comm, values);
        if (error.empty()) rhCommDestroy(comm);
        return error;
      });
  EXPECT_THAT(outputs, Each(""));
}

// How long ranks may stand still is another matter.
TEST(ProcessesTest, RanksMayStartAsFarApartAsTheStartAllows) {
  const auto outputs = RunForks(Environments(2, {{"RAILHEAD_TIMEOUT_SECONDS", "4"},
                                                 {"RAILHEAD_START_TIMEOUT_SECONDS", "30"}}),
                                [](int rank) {
                                  if (rank == 1) absl::SleepFor(absl::Seconds(6));
                                  rhComm_t comm = nullptr;
                                  std::string error = Join(&comm);
                                  if (error.empty()) rhCommDestroy(comm);
                                  return error;
                                });
  EXPECT_THAT(outputs, Each(""));
}

TEST(ProcessesTest, RequiredRdmaWithoutDevicesFailsOnAllRanksWithTheSameReason) {
  std::vector<Environment> environments = Environments(3);
  for (Environment& environment : environments) environment["RAILHEAD_TRANSPORT"] = "auto";
  environments[1]["RAILHEAD_REQUIRE_RDMA"] = "1";
  const std::vector<std::string> outputs = RunForks(environments, [](int) {
    rhComm_t comm = nullptr;
    return Join(&comm);
  });
  for (const std::string& output : outputs) {
    EXPECT_EQ(output, outputs[0]);
    EXPECT_THAT(output, AllOf(HasSubstr("RAILHEAD_REQUIRE_RDMA=1 on rank 1 (pod p1)"),
                              HasSubstr("each of ranks 0-2: it was given no RDMA device")));
  }
}

TEST(ProcessesTest, AWrongVariableOnOneRankIsToldToAll) {
  std::vector<Environment> environments = Environments(3);
  environments[2]["RAILHEAD_TRANSPORT"] = "carrier-pigeon";
  const std::vector<std::string> outputs = RunForks(environments, [](int) {
    rhComm_t comm = nullptr;
    return Join(&comm);
  });
  for (const std::string& output : outputs) {
    EXPECT_THAT(output, AllOf(HasSubstr("invalid argument"), HasSubstr("rank 2 (pod p2)"),
                              HasSubstr("RAILHEAD_TRANSPORT='carrier-pigeon'"),
                              HasSubstr("auto, verbs, tcp or shm")));
  }
}

TEST(ProcessesTest, ASecretFileIsUsedAndItsAbsenceNamed) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/secret-", ::getpid());
  std::ofstream(path) << "0123456789abcdef\n";
  const auto join = [](int) {
    rhComm_t comm = nullptr;
    std::string error = Join(&comm);
    if (error.empty()) rhCommDestroy(comm);
    return error;
  };
  EXPECT_EQ(RunForks(Environments(2, {{"RAILHEAD_SECRET_FILE", path}}), join),
            (std::vector<std::string>{"", ""}));
  EXPECT_THAT(RunForks(Environments(1, {{"RAILHEAD_SECRET_FILE", path + "-none"}}), join)[0],
              AllOf(HasSubstr("rank 0 (pod p0): RAILHEAD_SECRET_FILE="), HasSubstr("-none")));
  ::unlink(path.c_str());
}

TEST(ProcessesTest, WantedRdmaThatIsNotThereIsDegradedNotFatal) {
  const std::vector<std::string> outputs =
      RunForks(Environments(2, {{"RAILHEAD_TRANSPORT", "verbs"}}), [](int) {
        rhComm_t comm = nullptr;
        std::string error = Join(&comm);
        if (!error.empty()) return error;
        rhCommInfo_t info;
        info.struct_size = sizeof info;
        rhCommGetInfo(comm, &info);
        std::string text =
            absl::StrCat(info.transport, " ", info.degraded, " ", info.degraded_reason);
        rhCommDestroy(comm);
        return text;
      });
  for (const std::string& output : outputs) {
    EXPECT_THAT(output, AllOf(HasSubstr("tcp 1 TCP instead of RDMA"), HasSubstr("rank 0 (pod p0)"),
                              HasSubstr("rank 1 (pod p1)")));
  }
}

TEST(ProcessesTest, MetricsAreServedAndATakenPortDoesNotStopTheJob) {
  std::vector<Environment> environments = Environments(2, {{"RAILHEAD_JOB", "scraped"}});
  const std::string port = absl::StrCat(FreePort());
  for (Environment& environment : environments) {
    environment["RAILHEAD_METRICS_PORT"] = port;
    environment["RAILHEAD_ALGO"] = "all_reduce=ring,broadcast=binomial";
  }
  const std::vector<std::string> outputs = RunForks(environments, [&port](int rank) -> std::string {
    rhComm_t comm = nullptr;
    std::string error = Join(&comm);
    if (!error.empty()) return error;
    std::vector<float> values(1000);
    for (int i = 0; i < 7; ++i) absl::StrAppend(&error, Reduce(comm, values));
    if (!error.empty()) return error;
    // A communicator of this one is counted with it, under the same rank, also when it is gone.
    rhComm_t reversed = nullptr;
    if (rhCommSplit(comm, 0, -rank, &reversed, nullptr) != rhSuccess) return rhGetLastError(comm);
    for (int i = 0; i < 5; ++i) {
      if (rhBroadcast(values.data(), values.data(), 1, rhFloat32, 0, reversed, nullptr) !=
          rhSuccess) {
        return rhGetLastError(reversed);
      }
    }
    rhCommDestroy(reversed);
    // Whichever rank got the port serves it; rank 0 looks while the other waits for it.
    const std::string page =
        rank == 0 ? testing::HttpGet(std::stoi(port), "/metrics") : std::string("fine");
    absl::StrAppend(&error, Reduce(comm, values));
    rhCommDestroy(comm);
    return error.empty() ? page : error;
  });
  EXPECT_EQ(outputs[1], "fine");
  EXPECT_THAT(outputs[0],
              AllOf(HasSubstr("railhead_rail_transmit_bytes_total{job=\"scraped\",rank="),
                    // The other rank may still be finishing its seventh.
                    ::testing::ContainsRegex("algorithm=\"ring\",size_class=\"<=4KiB\"} [67]"),
                    HasSubstr("railhead_degraded{job=\"scraped\""),
                    HasSubstr("world_size=\"2\",transport=\"tcp\",requested=\"tcp\",fallback="),
                    ::testing::ContainsRegex(
                        "railhead_collective_operations_total.*collective=\"broadcast\",.*} 5"),
                    // One rank alone.
                    ::testing::Not(AllOf(HasSubstr("rank=\"0\""), HasSubstr("rank=\"1\""))),
                    HasSubstr("rail=\"0\",device=\"lo\",port=\"0\",transport=\"tcp\"} 1")));
}

TEST(ProcessesTest, AUniqueIdWorksAcrossForks) {
  ::setenv("RAILHEAD_SOCKET_IFNAME", "lo", 1);
  rhUniqueId id;
  ASSERT_EQ(rhGetUniqueId(&id), rhSuccess);
  const std::vector<std::string> outputs = RunForks(Environments(3), [&id](int rank) {
    rhComm_t comm = nullptr;
    if (rhCommInitRank(&comm, 3, id, rank) != rhSuccess)
      return std::string(rhGetLastError(nullptr));
    std::vector<float> values(1000, 1.0F);
    const std::string error = Reduce(comm, values);
    rhCommDestroy(comm);
    return error.empty() ? absl::StrCat(values[999]) : error;
  });
  EXPECT_EQ(outputs, std::vector<std::string>(3, "3"));
}

}  // namespace
}  // namespace railhead
