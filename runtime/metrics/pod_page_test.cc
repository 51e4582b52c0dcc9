// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/pod_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/net/local_socket.h"
#include "runtime/net/socket.h"
#include "runtime/testing/http.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead::metrics {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using railhead::testing::FreePort;
using railhead::testing::Process;

Families FamiliesOf(int rank) {
  prometheus::ClientMetric series;
  series.label = {{"job", "train"}, {"rank", absl::StrCat(rank)}};
  series.gauge.value = rank;
  return {{"railhead_rank", "help", prometheus::MetricType::Gauge, {series}}};
}

absl::StatusOr<std::unique_ptr<PodPage>> OpenPage(int port, int rank) {
  return PodPage::Open(
      port, "pod", [rank] { return FamiliesOf(rank); }, Logger());
}

std::set<int> RanksAt(int port) {
  const std::string text = railhead::testing::HttpGet(port, "/metrics");
  const std::regex series(R"re(\nrailhead_rank\{job="train",rank="(\d+)"\} )re");
  std::set<int> ranks;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), series);
       at != std::sregex_iterator(); ++at) {
    EXPECT_TRUE(ranks.insert(std::stoi((*at)[1])).second) << "twice: rank " << (*at)[1];
  }
  return ranks;
}

// Processes join and leave in the background.
::testing::AssertionResult PageComesToHave(int port, const std::set<int>& wanted) {
  const absl::Time deadline = MonotonicNow() + absl::Seconds(60);
  std::set<int> ranks;
  while (MonotonicNow() < deadline) {
    ranks = RanksAt(port);
    if (ranks == wanted) return ::testing::AssertionSuccess();
    absl::SleepFor(absl::Milliseconds(5));
  }
  return ::testing::AssertionFailure() << "the page has ranks " << absl::StrJoin(ranks, ", ")
                                       << " and not " << absl::StrJoin(wanted, ", ");
}

TEST(PodPageTest, OneHasTheRanksOfAll) {
  const int port = FreePort();
  std::vector<std::unique_ptr<PodPage>> pages;
  for (int rank = 0; rank < 8; ++rank) {
    auto page = OpenPage(port, rank);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_EQ((*page)->port(), port);
    pages.push_back(*std::move(page));
  }
  // A page that does not answer within a second is left out for a moment.
  EXPECT_TRUE(PageComesToHave(port, {0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(PageComesToHave(port, {0, 1, 2, 3, 4, 5, 6, 7}));
}

// Both are there; the log says so once, whoever serves the page.
TEST(PodPageTest, TwoProcessesThatAreTheSameRankAreBothThere) {
  const int port = FreePort();
  const auto serve = [port]() -> std::string {
    const auto page = OpenPage(port, 0);
    if (!page.ok()) return std::string(page.status().message());
    ::pause();
    return "";
  };
  ::testing::internal::CaptureStderr();
  const auto own = OpenPage(port, 0);
  ASSERT_TRUE(own.ok()) << own.status();
  const Process other = Process::Fork({}, serve);
  const auto page = [port] { return railhead::testing::HttpGet(port, "/metrics"); };
  const std::string series = "railhead_rank{job=\"train\",rank=\"0\"";
  const std::string both = absl::StrCat(series, ",process=\"", ::getpid(), "\"} 0\n", series,
                                        ",process=\"", other.pid(), "\"} 0\n");
  const absl::Time deadline = MonotonicNow() + absl::Seconds(60);
  while (!absl::StrContains(page(), both) && MonotonicNow() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_THAT(page(), AllOf(HasSubstr(both), HasSubstr("railhead_metrics_conflicts{job=\"train\","
                                                       "rank=\"0\"} 2\n")));
  const std::string log = ::testing::internal::GetCapturedStderr();
  const size_t first = log.find("are both rank 0 of job 'train'");
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("are both", first + 10), std::string::npos) << log;
}

TEST(PodPageTest, PagesComeAndGoInAnyOrder) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    std::mt19937 random(seed);
    const int port = FreePort();
    std::map<int, std::unique_ptr<PodPage>> pages;
    std::set<int> ranks;
    for (int step = 0; step < 25; ++step) {
      const bool opens = pages.size() < 2 || random() % 2 == 0;
      if (opens) {
        auto page = OpenPage(port, step);
        ASSERT_TRUE(page.ok()) << page.status() << " seed " << seed << " step " << step;
        pages[step] = *std::move(page);
        ranks.insert(step);
      } else {
        const auto goes = std::next(pages.begin(), static_cast<ptrdiff_t>(random() % pages.size()));
        ranks.erase(goes->first);
        pages.erase(goes);
      }
      // Sometimes the next comes or goes while the one before is not settled.
      if (random() % 2 == 0) {
        ASSERT_TRUE(PageComesToHave(port, ranks)) << "seed " << seed;
      }
    }
    EXPECT_TRUE(PageComesToHave(port, ranks)) << "seed " << seed;
  }
}

TEST(PodPageTest, AnotherProcessTakesOverWhenOneIsKilled) {
  const int port = FreePort();
  std::vector<Process> processes;
  std::set<int> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    processes.push_back(Process::Fork({}, [port, rank]() -> std::string {
      const auto page = OpenPage(port, rank);
      if (!page.ok()) return std::string(page.status().message());
      ::pause();
      return "";
    }));
    ranks.insert(rank);
    ASSERT_TRUE(PageComesToHave(port, ranks));
  }
  for (int rank = 0; rank < 3; ++rank) {
    ::kill(processes[static_cast<size_t>(rank)].pid(), SIGKILL);
    ranks.erase(rank);
    EXPECT_TRUE(PageComesToHave(port, ranks));
  }
}

TEST(PodPageTest, AProcessThatDoesNotAnswerIsLeftOutUntilItDoes) {
  std::mutex mutex;
  std::condition_variable changed;
  bool stuck = true;
  const int port = FreePort();
  const auto host = OpenPage(port, 0);
  ASSERT_TRUE(host.ok()) << host.status();
  const auto member = PodPage::Open(
      port, "pod",
      [&] {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return !stuck; });
        return FamiliesOf(1);
      },
      Logger());
  ASSERT_TRUE(member.ok()) << member.status();
  const auto other = OpenPage(port, 2);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(PageComesToHave(port, {0, 2}));
  {
    const std::lock_guard<std::mutex> lock(mutex);
    stuck = false;
  }
  changed.notify_all();
  EXPECT_TRUE(PageComesToHave(port, {0, 1, 2}));
}

// The names of this process's page sockets. Other tests in this network namespace have some, too.
std::set<std::string> PageSockets() {
  std::set<std::string> own;  // "socket:[INODE]"
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    own.insert(std::filesystem::read_symlink(entry.path(), gone).string());
  }
  std::set<std::string> names;
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    // Num RefCount Protocol Flags Type St Inode Path
    const std::vector<std::string> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (fields.size() < 8 || !absl::StartsWith(fields[7], "@railhead-page-")) continue;
    if (own.contains(absl::StrCat("socket:[", fields[6], "]"))) names.insert(fields[7].substr(1));
  }
  return names;
}

TEST(PodPageTest, StrangersDoNotSpoilThePage) {
  const int port = FreePort();
  const auto host = OpenPage(port, 0);
  ASSERT_TRUE(host.ok()) << host.status();
  const std::vector<std::string> answers = {
      "", std::string(4, '\xff'), std::string("\x03\0\0\0abc", 7), std::string("\0\0\0\0", 4), "x"};
  std::vector<net::Fd> strangers;
  const absl::Time soon = MonotonicNow() + absl::Seconds(20);
  for (const std::string& name : PageSockets()) {
    for (const std::string& answer : answers) {
      absl::StatusOr<net::Fd> stranger = net::DialLocal(name, soon);
      ASSERT_TRUE(stranger.ok()) << stranger.status();
      EXPECT_TRUE(net::SendAll(stranger->get(), answer, soon).ok());
      strangers.push_back(*std::move(stranger));
    }
  }
  EXPECT_EQ(strangers.size(), answers.size());
  EXPECT_EQ(RanksAt(port), std::set<int>{0});
  for (const net::Fd& stranger : strangers)
    EXPECT_TRUE(railhead::testing::IsClosedByPeer(stranger));
}

TEST(PodPageTest, ProcessesOfAnotherPodOrUserHaveNoPartInIt) {
  const int port = FreePort();
  const auto host = OpenPage(port, 0);
  ASSERT_TRUE(host.ok()) << host.status();
  const auto none = [] { return Families(); };
  EXPECT_THAT(std::string(PodPage::Open(port, "another", none, Logger()).status().message()),
              AllOf(HasSubstr(absl::StrCat("RAILHEAD_METRICS_PORT ", port)),
                    HasSubstr("another process may use the port")));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Process user = Process::Fork({}, [port, &none]() -> std::string {
    if (::setresuid(65534, 65534, 65534) != 0) return "cannot become another user";
    return std::string(PodPage::Open(port, "pod", none, Logger()).status().message());
  });
  EXPECT_THAT(user.Wait(MonotonicNow() + absl::Seconds(30)).output, HasSubstr("another user"));
}

}  // namespace
}  // namespace railhead::metrics
