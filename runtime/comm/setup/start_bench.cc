// SPDX-License-Identifier: Apache-2.0
//
// How long a job takes to start: from the moment that the first of its processes is begun to the
// moment that the last of them is ready. Ranks are processes of this machine, begun one after the
// other, each loading its libraries anew.
//
// usage: railhead_start_bench          a table in Markdown
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/config/env.h"
#include "runtime/net/socket.h"
#include "runtime/testing/bench.h"

namespace railhead {
namespace {

using testing::Die;
using testing::Now;

constexpr int kPasses = 5;
constexpr int kWorlds[] = {2, 16, 64, 256};
constexpr int kGoalWorld = 256;
constexpr double kGoalSeconds = 3;

// What every rank gives to the exchange: as much as a report about itself.
constexpr size_t kPart = 256;

// ---- A rank ----

// Says that it is ready, and waits until all are.
void Ready() {
  const double now = Now();
  if (::write(STDOUT_FILENO, &now, sizeof now) != sizeof now) Die("cannot write");
  char ignored = 0;
  while (::read(STDIN_FILENO, &ignored, 1) > 0) {
  }
}

void RunBootstrap() {
  const absl::StatusOr<config::Rendezvous> where =
      config::ReadRendezvous(config::ProcessEnvironment);
  config::Settings settings;
  const absl::Status read = config::ReadSettings(config::ProcessEnvironment, settings);
  if (!where.ok() || !read.ok()) Die("wrong environment");
  const absl::StatusOr<std::string> secret =
      bootstrap::ReadSecretFile(settings.secret_file, Logger());
  if (!secret.ok()) Die(secret.status().ToString());
  bootstrap::JoinOptions options;
  options.rank = where->rank;
  options.world_size = where->world_size;
  options.host = where->master_addr;
  options.port = where->master_port;
  options.secret = bootstrap::Secret(*secret, "");
  options.deadline = MonotonicNow() + settings.timeout;
  absl::StatusOr<bootstrap::Bootstrap> joined = bootstrap::Bootstrap::Join(std::move(options));
  if (!joined.ok()) Die(joined.status().ToString());
  const auto all = joined->Exchange(std::string(kPart, 'x'), MonotonicNow() + settings.timeout);
  if (!all.ok()) Die(all.status().ToString());
  const absl::StatusOr<std::unique_ptr<bootstrap::Watch>> watch =
      bootstrap::Watch::Start(*std::move(joined));
  if (!watch.ok()) Die(watch.status().ToString());
  Ready();
  (*watch)->Goodbye(MonotonicNow() + settings.timeout);
}

void RunCommunicator() {
  rhComm_t comm = nullptr;
  if (rhCommInitFromEnv(&comm) != rhSuccess) Die(rhGetLastError(nullptr));
  Ready();
  rhCommDestroy(comm);
}

// ---- The job ----

struct Case {
  const char* name;
  const char* part;       // what a rank runs
  const char* transport;  // of a communicator
  bool secret;
};

constexpr Case kCases[] = {
    {"rendezvous, tree and one exchange", "bootstrap", "tcp", false},
    {"the same with a secret", "bootstrap", "tcp", true},
    {"communicator in shared memory, with a secret", "communicator", "shm", true},
    {"communicator over TCP, with a secret", "communicator", "tcp", true},
};

pid_t Begin(const Case& what, int rank, const int ready, const int go) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::dup2(go, STDIN_FILENO);
  ::dup2(ready, STDOUT_FILENO);
  ::setenv("RANK", absl::StrCat(rank).c_str(), 1);
  ::execl("/proc/self/exe", "railhead_start_bench", what.part, nullptr);
  Die("cannot execute myself");
}

// Seconds until all were ready.
double Start(const Case& what, int world, const std::string& secret) {
  int port = 0;
  {
    const absl::StatusOr<net::Fd> free = net::Listen(*net::IpAddress::Parse("127.0.0.1"), 0);
    if (!free.ok()) Die(free.status().ToString());
    port = net::LocalAddress(free->get())->port;
  }
  ::setenv("WORLD_SIZE", absl::StrCat(world).c_str(), 1);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", absl::StrCat(port).c_str(), 1);
  ::setenv("RAILHEAD_TRANSPORT", what.transport, 1);
  ::setenv("RAILHEAD_METRICS_PORT", "0", 1);
  ::setenv("RAILHEAD_SECRET_FILE", what.secret ? secret.c_str() : "", 1);
  int ready[2];
  int go[2];
  if (::pipe2(ready, O_CLOEXEC) != 0 || ::pipe2(go, O_CLOEXEC) != 0) Die("no pipe");
  const double begin = Now();
  std::vector<pid_t> ranks;
  ranks.reserve(static_cast<size_t>(world));
  for (int rank = 0; rank < world; ++rank) {
    ranks.push_back(Begin(what, rank, ready[1], go[0]));
    if (ranks.back() < 0) Die("cannot fork");
  }
  ::close(ready[1]);
  ::close(go[0]);
  double last = begin;
  int count = 0;
  for (double moment = 0; ::read(ready[0], &moment, sizeof moment) == sizeof moment;) {
    last = std::max(last, moment);
    if (++count == world) break;
  }
  ::close(go[1]);
  bool good = count == world;
  for (const pid_t rank : ranks) {
    int status = 0;
    good = ::waitpid(rank, &status, 0) == rank && status == 0 && good;
  }
  ::close(ready[0]);
  if (!good) Die(absl::StrCat(what.name, " with ", world, " ranks failed"));
  return last - begin;
}

// Seconds that the cores have worked for anybody, and for this benchmark.
std::pair<double, double> Work() {
  std::ifstream stat("/proc/stat");
  std::string word;
  double user = 0;
  double nice = 0;
  double system = 0;
  stat >> word >> user >> nice >> system;
  double own = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    for (const timeval& part : {usage.ru_utime, usage.ru_stime}) {
      own += static_cast<double>(part.tv_sec) + 1e-6 * static_cast<double>(part.tv_usec);
    }
  }
  return {(user + nice + system) / static_cast<double>(::sysconf(_SC_CLK_TCK)), own};
}

int Run() {
  const double begin = Now();
  const auto [all_before, own_before] = Work();
  char secret[] = "/tmp/railhead-start-bench-XXXXXX";
  const int fd = ::mkstemp(secret);
  if (fd < 0 || ::write(fd, "0123456789abcdef0123456789abcdef", 32) != 32) Die("no file");
  ::close(fd);
  std::printf("| what | ranks | median of %d | slowest | goal | reached |\n", kPasses);
  std::printf("|---|---|---|---|---|---|\n");
  for (const Case& what : kCases) {
    for (const int world : kWorlds) {
      std::vector<double> seconds;
      seconds.reserve(kPasses);
      for (int pass = 0; pass < kPasses; ++pass) seconds.push_back(Start(what, world, secret));
      std::sort(seconds.begin(), seconds.end());
      const bool has_goal = world == kGoalWorld;
      std::printf("| %s | %d | %.2f s | %.2f s | %s | %s |\n", what.name, world,
                  seconds[kPasses / 2], seconds.back(), has_goal ? "< 3 s" : "",
                  !has_goal                       ? ""
                  : seconds.back() < kGoalSeconds ? "yes"
                                                  : "no");
      std::fflush(stdout);
    }
  }
  ::unlink(secret);
  const auto [all, own] = Work();
  const double cores = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)) * (Now() - begin);
  std::printf("\nOther programs took %.0f %% of the cores' time during the runs.\n",
              100 * std::max(0.0, all - all_before - (own - own_before)) / cores);
  return 0;
}

}  // namespace
}  // namespace railhead

int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "";
  if (part.empty()) return railhead::Run();
  if (part == "bootstrap") {
    railhead::RunBootstrap();
  } else {
    railhead::RunCommunicator();
  }
  return 0;
}
