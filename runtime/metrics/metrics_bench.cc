// SPDX-License-Identifier: Apache-2.0
//
// What metrics cost a job: all-reduces of 4 MiB between two ranks by a job without metrics and one
// whose two pages are scraped once a second, in turn; and, since that is far less than the noise,
// what one operation and one scrape spend on metrics, counted directly. Prints Markdown.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "railhead/railhead.h"
#include "runtime/base/clock.h"
#include "runtime/metrics/collective_stats.h"
#include "runtime/testing/http.h"
#include "runtime/testing/ranks.h"

namespace railhead::metrics {
namespace {

constexpr int kRanks = 2;
constexpr size_t kCount = size_t{1} << 20U;  // of fp32
constexpr size_t kBytes = kCount * sizeof(float);
constexpr int kRounds = 12;
constexpr double kRoundSeconds = 1;  // each with one scrape
constexpr int kScrapes = 200;
constexpr double kGoal = 0.005;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "metrics_bench: %s\n", why.c_str());
  std::exit(1);
}

double Seconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double Quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(part * static_cast<double>(values.size() - 1)))];
}

// Does what is asked for: so many all-reduces, or none. Answers how long one took, and how much
// work the process has done in all (seconds).
using Answer = std::array<double, 2>;

[[noreturn]] void RunRank(int asked, int answers) {
  rhComm_t comm = nullptr;
  if (rhCommInitFromEnv(&comm) != rhSuccess) Die(rhGetLastError(nullptr));
  const std::vector<float> send(kCount, 1);
  std::vector<float> receive(kCount);
  int operations = 0;
  while (::read(asked, &operations, sizeof operations) == sizeof operations) {
    const double begin = Seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < operations; ++i) {
      if (rhAllReduce(send.data(), receive.data(), kCount, rhFloat32, rhSum, comm, nullptr) !=
          rhSuccess) {
        Die(rhGetLastError(comm));
      }
    }
    const double end = Seconds(CLOCK_MONOTONIC);
    const Answer answer = {(end - begin) / std::max(operations, 1),
                           Seconds(CLOCK_PROCESS_CPUTIME_ID)};
    if (::write(answers, &answer, sizeof answer) != sizeof answer) break;
  }
  rhCommDestroy(comm);
  std::exit(0);
}

class Job {
 public:
  Job(const char* transport, bool with_metrics) {
    const int master = testing::FreePort();
    for (int rank = 0; rank < kRanks; ++rank) {
      Rank& one = ranks_.emplace_back();
      one.metrics_port = with_metrics ? testing::FreePort() : 0;
      int asked[2];
      int answers[2];
      if (::pipe2(asked, O_CLOEXEC) != 0 || ::pipe2(answers, O_CLOEXEC) != 0) Die("no pipe");
      one.pid = ::fork();
      if (one.pid < 0) Die("cannot fork");
      if (one.pid == 0) {
        // So that reading ends when the benchmark does.
        for (const Rank& other : ranks_) ::close(other.ask);
        ::close(asked[1]);
        const std::pair<const char*, std::string> environment[] = {
            {"RANK", absl::StrCat(rank)},
            {"WORLD_SIZE", absl::StrCat(kRanks)},
            {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", absl::StrCat(master)},
            {"RAILHEAD_TRANSPORT", transport},
            {"RAILHEAD_SOCKET_IFNAME", "lo"},
            {"RAILHEAD_METRICS_PORT", absl::StrCat(one.metrics_port)}};
        for (const auto& [name, value] : environment) ::setenv(name, value.c_str(), 1);
        RunRank(asked[0], answers[1]);
      }
      ::close(asked[0]);
      ::close(answers[1]);
      one.ask = asked[1];
      one.answers = answers[0];
    }
  }
  ~Job() {
    for (const Rank& rank : ranks_) ::close(rank.ask);
    for (const Rank& rank : ranks_) {
      ::close(rank.answers);
      ::waitpid(rank.pid, nullptr, 0);
    }
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void Begin(int operations) {
    for (const Rank& rank : ranks_) {
      if (::write(rank.ask, &operations, sizeof operations) < 0) Die("a rank is gone");
    }
  }
  // Of both ranks: the time of the slower one, and all work.
  Answer Await() {
    Answer both = {0, 0};
    for (const Rank& rank : ranks_) {
      Answer answer;
      if (::read(rank.answers, &answer, sizeof answer) != sizeof answer) Die("a rank has failed");
      both[0] = std::max(both[0], answer[0]);
      both[1] += answer[1];
    }
    return both;
  }
  Answer Do(int operations) {
    Begin(operations);
    return Await();
  }
  void Scrape() {
    for (const Rank& rank : ranks_) {
      const std::string page = testing::HttpGet(rank.metrics_port, "/metrics");
      if (page.find("railhead_") == std::string::npos) Die("a page without metrics");
    }
  }

 private:
  struct Rank {
    pid_t pid = 0;
    int metrics_port = 0;
    int ask = -1;
    int answers = -1;
  };
  std::vector<Rank> ranks_;
};

// Nanoseconds of `work`, at the best of many tries.
template <class Work>
double Cost(Work work) {
  constexpr int kTimes = 20000;
  double best = 1;
  for (int i = 0; i < 50; ++i) {
    const double begin = Seconds(CLOCK_MONOTONIC);
    for (int k = 0; k < kTimes; ++k) work(k);
    best = std::min(best, (Seconds(CLOCK_MONOTONIC) - begin) / kTimes);
  }
  return 1e9 * best;
}

struct Compared {
  double seconds;  // of an operation without metrics, median
  double scrape;   // seconds of work that a rank spends on one
};

Compared Compare(const char* transport) {
  Job without(transport, false);
  Job with(transport, true);
  without.Do(20);
  with.Do(20);
  const int operations = std::max(1, static_cast<int>(kRoundSeconds / without.Do(100)[0]));
  std::vector<double> off;
  std::vector<double> on;
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    off.push_back(without.Do(operations)[0]);
    with.Begin(operations);
    absl::SleepFor(absl::Seconds(kRoundSeconds / 2));
    with.Scrape();
    on.push_back(with.Await()[0]);
    ratios.push_back(on.back() / off.back() - 1);
  }
  std::printf("| %s | %.1f | %.1f | %+.2f %% | %+.2f to %+.2f %% |\n", transport,
              1e6 * Quantile(off, 0.5), 1e6 * Quantile(on, 0.5), 100 * Quantile(ratios, 0.5),
              100 * Quantile(ratios, 0.25), 100 * Quantile(ratios, 0.75));
  std::fflush(stdout);
  const double before = with.Do(0)[1];
  for (int i = 0; i < kScrapes; ++i) with.Scrape();
  const double work = with.Do(0)[1] - before;
  return {Quantile(off, 0.5), work / kScrapes / kRanks};
}

int Run() {
  std::printf("| 4 MiB between 2 ranks | off, us | on, us | difference | middle half |\n");
  std::printf("|---|---|---|---|---|\n");
  std::fflush(stdout);  // or the ranks, which are forked, would print it again
  const std::array<const char*, 2> transports = {"shm", "tcp"};
  std::vector<Compared> compared;
  compared.reserve(transports.size());
  for (const char* transport : transports) compared.push_back(Compare(transport));

  // Twice the clock and once the counters. (The flight recorder needs the times as well.)
  Clock clock;
  CollectiveStats stats;
  const double end = Seconds(CLOCK_MONOTONIC) + 0.1;  // until the clock knows its rate
  while (Seconds(CLOCK_MONOTONIC) < end) clock.Now();
  const double operation = Cost([&](int /*k*/) {
    const int64_t start = clock.Now();
    stats.Record(collectives::Collective::kAllReduce, collectives::Algorithm::kSharedMemory, kBytes,
                 clock.Now() - start);
  });

  std::printf(
      "\n| counted directly | an operation's counters | a scrape, once a second | together |");
  std::printf(" goal | reached |\n|---|---|---|---|---|---|\n");
  for (size_t i = 0; i < transports.size(); ++i) {
    const double per_operation = 1e-9 * operation / compared[i].seconds;
    const double together = per_operation + compared[i].scrape;
    std::printf("| %s | %.0f ns: %.4f %% | %.0f us: %.4f %% | %.4f %% | < %.1f %% | %s |\n",
                transports[i], operation, 100 * per_operation, 1e6 * compared[i].scrape,
                100 * compared[i].scrape, 100 * together, 100 * kGoal,
                together < kGoal ? "yes" : "no");
  }
  return 0;
}

}  // namespace
}  // namespace railhead::metrics

int main() { return railhead::metrics::Run(); }
