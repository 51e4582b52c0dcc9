// SPDX-License-Identifier: Apache-2.0
//
// The descriptors and threads that a further communicator of the same ranks costs a process.
// Programs such as PyTorch jobs make dozens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/base/now.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead {
namespace {

using testing::Process;

constexpr int kFurther = 8;

// The system may show a thread for a moment after its end.
bool IsEnding(const std::filesystem::path& task) {
  constexpr unsigned kExiting = 4;  // PF_EXITING
  std::ifstream file(task / "stat");
  std::string stat;
  std::getline(file, stat, '\0');
  // After the name in parentheses: state, four numbers of processes, terminal and its group, flags.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return true;
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(name_end + 2), ' ');
  return fields.size() > 6 && (std::stoul(fields[6]) & kExiting) != 0;
}

// Open descriptors by kind ("socket", "anon_inode"), and threads.
std::map<std::string, int> Held() {
  namespace fs = std::filesystem;
  std::map<std::string, int> held;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    std::string target = fs::read_symlink(entry.path(), gone).string();
    if (gone || absl::StartsWith(target, "/proc/")) continue;  // that of this loop
    ++held[target.substr(0, target.find(":["))];
  }
  for (const fs::directory_entry& thread : fs::directory_iterator("/proc/self/task")) {
    if (!IsEnding(thread.path())) ++held["thread"];
  }
  return held;
}

// Held, once it has not changed for a moment.
std::map<std::string, int> Settled() {
  std::map<std::string, int> held = Held();
  while (true) {
    absl::SleepFor(absl::Milliseconds(200));
    const std::map<std::string, int> now = Held();
    if (now == held) return held;
    held = now;
  }
}

using Make = rhResult_t (*)(rhComm_t comm, int rank, int count, rhComm_t* made);

rhResult_t BySplit(rhComm_t comm, int /*rank*/, int /*count*/, rhComm_t* made) {
  return rhCommSplit(comm, 0, 0, made, nullptr);
}

rhResult_t ById(rhComm_t comm, int rank, int count, rhComm_t* made) {
  rhUniqueId id{};
  if (rank == 0) rhGetUniqueId(&id);
  const rhResult_t told = rhBroadcast(&id, &id, sizeof id, rhUint8, 0, comm, nullptr);
  return told == rhSuccess ? rhCommInitRank(made, count, id, rank) : told;
}

// Returns what each of several further communicators adds on a rank: "socket 1, thread 0".
std::string More(std::map<std::string, int> before) {
  std::vector<std::string> parts;
  for (const auto& [kind, number] : Held()) {
    const int more = number - before[kind];
    if (more == 0) continue;
    parts.push_back(absl::StrCat(kind, " ", more / kFurther, more % kFurther == 0 ? "" : "?"));
  }
  return absl::StrJoin(parts, ", ");
}

// Returns this cost on a rank. Until they share their trees' connections, communicators have their
// own, so it waits for the expected cost.
std::string Cost(int rank, int count, Make make, const std::string& expected) {
  rhComm_t comm = nullptr;
  if (rhCommInitFromEnv(&comm) != rhSuccess) return rhGetLastError(nullptr);
  std::array<rhComm_t, kFurther + 1> made = {};
  std::map<std::string, int> before;
  for (rhComm_t& further : made) {
    // The first may open what all share.
    if (&further == &made[1]) before = Settled();
    if (make(comm, rank, count, &further) != rhSuccess) return rhGetLastError(nullptr);
    int value = 1;
    if (rhAllReduce(&value, &value, 1, rhInt32, rhSum, further, nullptr) != rhSuccess) {
      return rhGetLastError(further);
    }
  }
  const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
  while (More(before) != expected && MonotonicNow() < deadline) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  const std::string cost = More(before);
  // Those that go first would close what others still share.
  rhBarrier(comm, nullptr);
  for (rhComm_t further : made) rhCommDestroy(further);
  rhCommDestroy(comm);
  return cost;
}

std::vector<std::string> Costs(int ranks, const std::string& transport, Make make,
                               const std::string& expected) {
  const int port = testing::FreePort();
  std::vector<Process> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    testing::Environment environment = testing::RankEnvironment(rank, ranks, port);
    environment["RAILHEAD_TRANSPORT"] = transport;
    environment["RAILHEAD_SOCKET_IFNAME"] = "lo,lo";
    processes.push_back(
        Process::Fork(environment, [&] { return Cost(rank, ranks, make, expected); }));
  }
  const absl::Time deadline = MonotonicNow() + absl::Seconds(100);
  std::vector<std::string> outputs;
  for (Process& process : processes) outputs.push_back(process.Wait(deadline).output);
  return outputs;
}

class FamilyCostTest : public ::testing::TestWithParam<std::tuple<int, Make>> {};

TEST_P(FamilyCostTest, InMemoryAFurtherCommunicatorCostsNothing) {
  const auto [ranks, make] = GetParam();
  EXPECT_THAT(Costs(ranks, "shm", make, ""), ::testing::Each(""));
}

// With two rails: a connection to each rank that it has exchanged data with over each rail, and an
// epoll to sleep on. All communicators share their listening sockets and their trees' connections.
TEST_P(FamilyCostTest, OverTcpItCostsItsConnections) {
  const auto [ranks, make] = GetParam();
  const std::string expected = absl::StrCat("anon_inode 1, socket ", 2 * (ranks - 1));
  EXPECT_THAT(Costs(ranks, "tcp", make, expected), ::testing::Each(expected));
}

INSTANTIATE_TEST_SUITE_P(Ways, FamilyCostTest,
                         ::testing::Combine(::testing::Values(2, 4),
                                            ::testing::Values(BySplit, ById)),
                         [](const auto& way) {
                           return absl::StrCat(
                               "Of", std::get<0>(way.param), "Ranks",
                               std::get<1>(way.param) == BySplit ? "BySplit" : "ById");
                         });

}  // namespace
}  // namespace railhead
