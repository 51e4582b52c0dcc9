// SPDX-License-Identifier: Apache-2.0
//
// Every collective of the C API, by ranks in processes, over rails and in shared memory.
#include "runtime/testing/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/reduce/reduce.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead {
namespace {

using ::testing::AllOf;
using testing::Collective;
using testing::CollectiveCase;
using testing::Environment;
using testing::HasRoot;
using ::testing::HasSubstr;
using testing::kCollectives;
using testing::Process;
using testing::RankEnvironment;
using testing::Reduces;
using testing::Trial;

rhResult_t Call(rhComm_t comm, const CollectiveCase& c, const void* send, void* receive) {
  switch (c.collective) {
    case Collective::kAllReduce:
      return rhAllReduce(send, receive, c.count, c.type, c.op, comm, nullptr);
    case Collective::kAllGather:
      return rhAllGather(send, receive, c.count, c.type, comm, nullptr);
    case Collective::kReduceScatter:
      return rhReduceScatter(send, receive, c.count, c.type, c.op, comm, nullptr);
    case Collective::kBroadcast:
      return rhBroadcast(send, receive, c.count, c.type, c.root, comm, nullptr);
    case Collective::kReduce:
      return rhReduce(send, receive, c.count, c.type, c.op, c.root, comm, nullptr);
    case Collective::kBarrier:
      return rhBarrier(comm);
  }
  return rhInternalError;
}

std::string RunCases(rhComm_t comm, int rank, int ranks, const std::vector<CollectiveCase>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    Trial trial(cases[i], rank, ranks, i);
    if (Call(comm, cases[i], trial.send(), trial.receive()) != rhSuccess) {
      return absl::StrCat(ToString(cases[i]), ": ", rhGetLastError(comm));
    }
    std::string error = trial.Check();
    if (!error.empty()) return absl::StrCat("case ", i, ": ", error);
  }
  return "";
}

// Forks ranks that join by environment, and returns what their bodies returned.
std::vector<std::string> RunForks(int ranks, const std::string& transport,
                                  const std::function<std::string(rhComm_t, int rank)>& body,
                                  double seconds = 100) {
  const int port = testing::FreePort();
  std::vector<Process> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    Environment environment = RankEnvironment(rank, ranks, port);
    environment["RAILHEAD_TRANSPORT"] = transport;
    processes.push_back(Process::Fork(environment, [&] {
      rhComm_t comm = nullptr;
      if (rhCommInitFromEnv(&comm) != rhSuccess) return std::string(rhGetLastError(nullptr));
      std::string text = body(comm, rank);
      rhCommDestroy(comm);
      return text;
    }));
  }
  const absl::Time deadline = absl::Now() + absl::Seconds(seconds);
  std::vector<std::string> outputs;
  for (Process& process : processes) outputs.push_back(process.Wait(deadline).output);
  return outputs;
}

class CollectivesTest : public ::testing::TestWithParam<std::string> {
 protected:
  static void Run(int ranks, const std::vector<CollectiveCase>& cases) {
    const std::vector<std::string> outputs =
        RunForks(ranks, GetParam(), [&](rhComm_t comm, int rank) {
          std::string error = RunCases(comm, rank, ranks, cases);
          return error.empty() ? std::string("right") : error;
        });
    EXPECT_EQ(outputs, std::vector<std::string>(static_cast<size_t>(ranks), "right"));
  }
};

TEST_P(CollectivesTest, EverySizeInAndOutOfPlaceFromEveryRoot) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    std::vector<CollectiveCase> cases;
    // In bytes: around what is done at once, a chunk in shared memory and a segment on a ring.
    for (const size_t count : {0, 1, 2, 63, 65, 8192, 8193, 32768, 32769, 131071, 131073, 300001}) {
      for (const Collective collective : kCollectives) {
        for (int root = 0; root < (HasRoot(collective) ? ranks : 1); ++root) {
          cases.push_back({collective, rhUint8, rhSum, count, root, false});
          cases.push_back({collective, rhUint8, rhSum, count, root, true});
        }
      }
    }
    Run(ranks, cases);
  }
}

TEST_P(CollectivesTest, EveryTypeAndOperator) {
  for (int ranks = 1; ranks <= 5; ranks += 2) {
    std::vector<CollectiveCase> cases;
    for (int type = rhInt8; type <= rhUint16; ++type) {
      for (int op = rhSum; op <= rhBxor; ++op) {
        const auto t = static_cast<rhDataType_t>(type);
        const auto o = static_cast<rhRedOp_t>(op);
        for (const Collective collective : kCollectives) {
          if (Reduces(collective) ? !reduce::CanReduce(t, o) : op != rhSum) continue;
          cases.push_back({collective, t, o, 1, ranks - 1, true});
          cases.push_back({collective, t, o, 5003, ranks / 2, false});
        }
      }
    }
    Run(ranks, cases);
  }
}

TEST_P(CollectivesTest, LargeOnes) {
  std::vector<CollectiveCase> cases;
  for (const Collective collective : kCollectives) {
    cases.push_back({collective, rhFloat32, rhAvg, 1100003, 1, false});
    cases.push_back({collective, rhInt64, rhMax, 524289, 0, true});
  }
  Run(3, cases);
}

TEST_P(CollectivesTest, AnySuccession) {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    std::mt19937 random(static_cast<unsigned>(ranks));
    std::vector<CollectiveCase> cases;
    for (int i = 0; i < 300; ++i) {
      const size_t largest = size_t{1} << (random() % 19);
      cases.push_back({kCollectives[random() % kCollectives.size()],
                       random() % 2 == 0 ? rhInt32 : rhFloat16, rhAvg, random() % largest,
                       static_cast<int>(random() % static_cast<unsigned>(ranks)),
                       random() % 2 == 0});
    }
    Run(ranks, cases);
  }
}

TEST_P(CollectivesTest, AKilledRankIsNamedByAllOthers) {
  constexpr std::array<const char*, 6> kNames = {"all_reduce", "all_gather", "reduce_scatter",
                                                 "broadcast",  "reduce",     "barrier"};
  for (const Collective collective : kCollectives) {
    for (int victim = 0; victim < 3; ++victim) {
      const CollectiveCase c = {collective, rhInt32, rhSum, 50000, 1, false};
      const std::vector<std::string> outputs = RunForks(
          3, GetParam(),
          [&](rhComm_t comm, int rank) -> std::string {
            Trial trial(c, rank, 3, 1);
            for (int i = 0; i < 1000000; ++i) {
              if (rank == victim && i == 5) ::raise(SIGKILL);
              if (Call(comm, c, trial.send(), trial.receive()) == rhSuccess) continue;
              return rhGetLastError(comm);
            }
            return "nobody died";
          },
          20);
      for (int rank = 0; rank < 3; ++rank) {
        if (rank == victim) continue;
        EXPECT_THAT(
            outputs[static_cast<size_t>(rank)],
            AllOf(HasSubstr(absl::StrCat("rank ", victim, " (pod p", victim, ")")),
                  HasSubstr(absl::StrCat(kNames[static_cast<size_t>(collective)], " number "))))
            << "rank " << rank;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, CollectivesTest, ::testing::Values("tcp", "shm"));

// What is wrong with a call's arguments, and that it harms nothing.
TEST(CollectivesArgumentsTest, AreRefusedByNameAndWithoutHarm) {
  const std::vector<std::string> outputs = RunForks(2, "shm", [](rhComm_t comm, int rank) {
    std::array<float, 64> a{};
    std::array<float, 64> b{};
    std::string missing;
    const auto refused = [&](rhResult_t result, const std::string& text) {
      const std::string error = rhGetLastError(comm);
      if (result != rhInvalidArgument || error != text) {
        absl::StrAppend(&missing, "expected '", text, "', not '", error, "'; ");
      }
    };
    float* const mine = a.data() + static_cast<size_t>(rank) * 8;
    const float* const others = a.data() + static_cast<size_t>(1 - rank) * 8;
    const auto* const odd = reinterpret_cast<const char*>(a.data()) + 1;
    const auto no_type = static_cast<rhDataType_t>(99);
    int stream = 0;

    refused(rhAllGather(others, a.data(), 8, rhFloat32, comm, nullptr),
            "rhAllGather: sendbuf and recvbuf overlap; in place, sendbuf is recvbuf + rank * "
            "sendcount, and else they are apart");
    refused(rhAllGather(nullptr, b.data(), 8, rhFloat32, comm, nullptr),
            "rhAllGather: sendbuf is NULL");
    refused(rhAllGather(odd, b.data(), 8, rhFloat32, comm, nullptr),
            "rhAllGather: sendbuf is not aligned to 4 bytes");
    refused(rhAllGather(a.data(), b.data(), SIZE_MAX / 4, rhFloat32, comm, nullptr),
            absl::StrCat("rhAllGather: sendcount ", SIZE_MAX / 4, " is too large"));
    refused(rhAllGather(a.data(), b.data(), 8, no_type, comm, nullptr),
            "rhAllGather: datatype 99 does not exist");
    refused(rhReduceScatter(a.data(), mine + 1, 8, rhFloat32, rhSum, comm, nullptr),
            "rhReduceScatter: sendbuf and recvbuf overlap; in place, recvbuf is sendbuf + rank * "
            "recvcount, and else they are apart");
    refused(rhReduceScatter(a.data(), b.data(), 8, rhFloat32, rhBor, comm, nullptr),
            "rhReduceScatter: op 6 works on integers only, and datatype 7 is a float");
    refused(rhBroadcast(a.data(), b.data(), 8, rhFloat32, 2, comm, nullptr),
            "rhBroadcast: root 2 does not exist; ranks go from 0 to 1");
    refused(rhBroadcast(a.data(), nullptr, 8, rhFloat32, rank, comm, nullptr),
            "rhBroadcast: recvbuf is NULL");
    refused(rhBroadcast(nullptr, b.data(), 8, rhFloat32, rank, comm, nullptr),
            "rhBroadcast: sendbuf is NULL");
    refused(rhBroadcast(a.data(), a.data() + 1, 8, rhFloat32, rank, comm, nullptr),
            "rhBroadcast: sendbuf and recvbuf overlap; they may be the same, or apart");
    refused(rhReduce(a.data(), b.data(), 8, rhFloat32, rhSum, -1, comm, nullptr),
            "rhReduce: root -1 does not exist; ranks go from 0 to 1");
    refused(rhReduce(a.data(), nullptr, 8, rhFloat32, rhSum, rank, comm, nullptr),
            "rhReduce: recvbuf is NULL");
    refused(rhReduce(a.data(), b.data(), 8, rhFloat32, static_cast<rhRedOp_t>(9), 0, comm, nullptr),
            "rhReduce: op 9 does not exist");
    refused(rhReduce(a.data(), b.data(), 8, rhFloat32, rhSum, 0, comm, &stream),
            "rhReduce: stream must be NULL: buffers are in host memory");
    if (rhBarrier(nullptr) != rhInvalidArgument ||
        std::string(rhGetLastError(nullptr)) != "rhBarrier: comm is NULL") {
      missing += "rhBarrier(NULL)";
    }
    // In place, and what only one rank uses.
    mine[0] = 1;
    if (rhAllGather(mine, a.data(), 8, rhFloat32, comm, nullptr) != rhSuccess || a[0] != 1 ||
        a[8] != 1) {
      missing += rhGetLastError(comm);
    }
    return missing;
  });
  EXPECT_EQ(outputs, std::vector<std::string>(2));
}

}  // namespace
}  // namespace railhead
