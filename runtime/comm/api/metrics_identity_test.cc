// SPDX-License-Identifier: Apache-2.0
//
// Processes of one pod that make groups of their own, as torch's new_group and DeviceMesh: on the
// metrics page each process is one rank, whatever its rank in each group.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <new>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/base/now.h"
#include "runtime/comm/api/ranks_by_environment_for_test.h"
#include "runtime/testing/http.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead {
namespace {

using testing::Environment;

constexpr int kProcesses = 4;
constexpr size_t kMostGroups = 8;

// Processes, in the order of their ranks in the group.
using Groups = std::vector<std::vector<int>>;

// Memory of all processes of a test.
struct Board {
  std::array<rhUniqueId, kMostGroups> ids;
  std::array<std::atomic<bool>, kMostGroups> has_id{};
  std::array<std::atomic<pid_t>, kProcesses> pids{};
  std::atomic<int> finished{0};
  std::atomic<bool> seen{false};
};

Board* NewBoard() {
  void* const memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (memory) Board();
}

template <typename Holds>
bool ComesToHold(Holds holds) {
  const absl::Time deadline = MonotonicNow() + absl::Seconds(30);
  while (!holds()) {
    if (MonotonicNow() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

// Calls by rank, name of the communicator, and the label that tells processes of one rank apart.
using Counted = std::map<std::tuple<int, std::string, std::string>, int>;

// Sums those of different algorithms. Expects no series twice, as Prometheus does.
Counted CountedOn(const std::string& page) {
  static const std::regex series(
      R"re(\nrailhead_collective_operations_total\{job="default",rank="(\d+)",(?:process="(\d+)",)?)re"
      R"re((collective="barrier",.*),comm="(\w+)"\} (\d+))re");
  Counted counted;
  std::set<std::string> names;
  for (auto at = std::sregex_iterator(page.begin(), page.end(), series);
       at != std::sregex_iterator(); ++at) {
    const std::string name =
        absl::StrCat((*at)[1].str(), (*at)[2].str(), (*at)[3].str(), (*at)[4].str());
    EXPECT_TRUE(names.insert(name).second) << at->str();
    counted[{std::stoi((*at)[1]), (*at)[4], (*at)[2]}] += std::stoi((*at)[5]);
  }
  return counted;
}

int CallsOf(size_t group) { return static_cast<int>(group) + 1; }

// Makes the groups that the process is in, and calls something in each. "" or an error.
std::string MakeGroups(int process, const Groups& groups, Board& board,
                       std::vector<rhComm_t>& comms) {
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto at = std::find(groups[g].begin(), groups[g].end(), process);
    if (at == groups[g].end()) continue;
    const auto rank = static_cast<int>(at - groups[g].begin());
    if (rank == 0) {
      if (rhGetUniqueId(&board.ids[g]) != rhSuccess) return rhGetLastError(nullptr);
      board.has_id[g] = true;
    }
    if (!ComesToHold([&] { return board.has_id[g].load(); })) return "no id";
    const std::string name = absl::StrCat("g", g);
    rhConfig_t config = RH_CONFIG_INITIALIZER;
    config.commName = name.c_str();
    rhComm_t comm = nullptr;
    if (rhCommInitRankConfig(&comm, static_cast<int>(groups[g].size()), board.ids[g], rank,
                             &config) != rhSuccess) {
      return rhGetLastError(nullptr);
    }
    comms.push_back(comm);
    for (int call = 0; call < CallsOf(g); ++call) {
      if (rhBarrier(comm, nullptr) != rhSuccess) return rhGetLastError(comm);
    }
  }
  return "";
}

// Returns the page of the pod when all processes have done that.
std::string PageOf(const Groups& groups, const std::vector<Environment>& environments, int port,
                   Board& board) {
  size_t series = 0;
  for (const std::vector<int>& group : groups) series += group.size();
  const std::vector<std::string> outputs = RunForks(environments, [&](int process) -> std::string {
    board.pids[static_cast<size_t>(process)] = ::getpid();
    std::vector<rhComm_t> comms;
    const std::string error = MakeGroups(process, groups, board, comms);
    if (!error.empty()) return error;
    ++board.finished;
    if (!ComesToHold([&] { return board.finished == kProcesses; })) return "alone";
    std::string page;
    if (process == 0) {
      // Processes that do not answer in time are left out for a moment.
      ComesToHold([&] {
        page = testing::HttpGet(port, "/metrics");
        return CountedOn(page).size() >= series;
      });
      board.seen = true;
    }
    if (!ComesToHold([&] { return board.seen.load(); })) return "unseen";
    for (rhComm_t comm : comms) rhCommDestroy(comm);
    return page;
  });
  for (size_t p = 1; p < outputs.size(); ++p) EXPECT_EQ(outputs[p], "");
  return outputs[0];
}

std::vector<Environment> OfOnePod(int port, bool launched) {
  std::vector<Environment> environments = Environments(
      kProcesses, {{"RAILHEAD_METRICS_PORT", absl::StrCat(port)}, {"RAILHEAD_POD", "pod"}});
  for (Environment& environment : environments) {
    if (!launched) environment["RANK"] = environment["WORLD_SIZE"] = "";
  }
  return environments;
}

std::vector<int> Everyone(std::mt19937& random) {
  std::vector<int> all(kProcesses);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);
  return all;
}

Groups RandomGroups(std::mt19937& random) {
  Groups groups(1 + random() % kMostGroups);
  for (std::vector<int>& group : groups) {
    group = Everyone(random);
    group.resize(1 + random() % (kProcesses - 1));
  }
  return groups;
}

TEST(MetricsIdentityTest, EachProcessIsOneRankInAllItsGroups) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const bool launched = seed % 2 == 0;
    Groups groups = RandomGroups(random);
    std::vector<int> ranks(kProcesses);
    std::iota(ranks.begin(), ranks.end(), 0);
    if (!launched) {
      // The first is the world, and only it knows the ranks.
      groups.front() = Everyone(random);
      for (size_t rank = 0; rank < kProcesses; ++rank) {
        ranks[static_cast<size_t>(groups.front()[rank])] = static_cast<int>(rank);
      }
    }
    Counted wanted;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const int process : groups[g]) {
        wanted[{ranks[static_cast<size_t>(process)], absl::StrCat("g", g), ""}] = CallsOf(g);
      }
    }
    const int port = testing::FreePort();
    Board* const board = NewBoard();
    const std::string page = PageOf(groups, OfOnePod(port, launched), port, *board);
    EXPECT_EQ(CountedOn(page), wanted) << page.substr(0, 2000);
    EXPECT_EQ(page.find("railhead_metrics_conflicts"), std::string::npos);
    ::munmap(board, sizeof(Board));
  }
}

// Nothing tells them apart: each is rank 0 of a group of its own, as are jobs of one name.
TEST(MetricsIdentityTest, ProcessesThatSayTheyAreOneRankAreAllThere) {
  const Groups groups = {{0}, {1}, {2}, {3}};
  const int port = testing::FreePort();
  Board* const board = NewBoard();
  const std::string page = PageOf(groups, OfOnePod(port, false), port, *board);
  Counted wanted;
  for (size_t g = 0; g < groups.size(); ++g) {
    wanted[{0, absl::StrCat("g", g), absl::StrCat(board->pids[g].load())}] = CallsOf(g);
  }
  EXPECT_EQ(CountedOn(page), wanted) << page.substr(0, 2000);
  EXPECT_NE(page.find("\nrailhead_metrics_conflicts{job=\"default\",rank=\"0\"} 4\n"),
            std::string::npos);
  ::munmap(board, sizeof(Board));
}

}  // namespace
}  // namespace railhead
