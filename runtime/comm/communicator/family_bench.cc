// SPDX-License-Identifier: Apache-2.0
//
// What a further communicator of the same ranks costs: time until its first all-reduce is done,
// descriptors, threads and memory. Ranks are processes of this machine; pods are network namespaces
// that two virtual rails connect, for which it needs root.
//
// usage: railhead_family_bench          a table in Markdown
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/testing/bench.h"

namespace railhead {
namespace {

using testing::Die;
using testing::Must;
using testing::Now;

constexpr int kFurther = 300;

struct Case {
  const char* name;
  int ranks;
  int pods;
  const char* transport;
  const char* goal;
};

constexpr Case kCases[] = {
    {"shared memory", 2, 1, "shm", "< 20 ms"},
    {"shared memory", 8, 1, "shm", "< 20 ms"},
    {"shared memory", 16, 1, "shm", "< 20 ms"},
    {"TCP, two rails", 2, 2, "auto", "< 100 ms"},
    {"TCP, two rails, and shared memory within pods", 4, 2, "auto", "< 100 ms"},
    {"TCP, two rails, and shared memory within pods", 16, 2, "auto", "< 100 ms"},
};

// What one rank has spent for all further communicators.
struct Spent {
  double seconds = 0;
  int64_t descriptors = 0;
  int64_t threads = 0;
  int64_t bytes = 0;
};

int64_t Entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

// Memory that ranks share counts for each of them.
int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  statm >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

Spent Measure() {
  rhComm_t comm = nullptr;
  if (rhCommInitFromEnv(&comm) != rhSuccess) Die(rhGetLastError(nullptr));
  std::vector<rhComm_t> made(kFurther + 1);
  Spent before;
  for (rhComm_t& further : made) {
    // The first may open what all share.
    if (&further == &made[1]) {
      before = {Now(), Entries("/proc/self/fd"), Entries("/proc/self/task"), ResidentBytes()};
    }
    Must(rhCommSplit(comm, 0, 0, &further, nullptr), comm);
    int64_t value = 1;
    Must(rhAllReduce(&value, &value, 1, rhInt64, rhSum, further, nullptr), further);
  }
  const Spent after = {Now(), Entries("/proc/self/fd"), Entries("/proc/self/task"),
                       ResidentBytes()};
  for (rhComm_t further : made) rhCommDestroy(further);
  rhCommDestroy(comm);
  return {after.seconds - before.seconds, after.descriptors - before.descriptors,
          after.threads - before.threads, after.bytes - before.bytes};
}

// ---- Pods ----

// Runs a command of the shell. Returns true if it succeeds.
bool Shell(const std::string& command) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    std::_Exit(127);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

std::string NamespaceOf(int pod) { return absl::StrCat("railhead-family-", pod); }

void RemovePods() {
  for (const int pod : {0, 1}) {
    Shell(absl::StrCat("ip netns del ", NamespaceOf(pod), " 2>/dev/null"));
  }
}

void MakePods() {
  RemovePods();
  std::string make = "set -e; ";
  for (const int pod : {0, 1}) {
    absl::StrAppend(&make, "ip netns add ", NamespaceOf(pod), "; ip -n ", NamespaceOf(pod),
                    " link set lo up; ");
  }
  for (const int rail : {0, 1}) {
    absl::StrAppend(&make, "ip link add rail", rail, " netns ", NamespaceOf(0),
                    " type veth peer name rail", rail, " netns ", NamespaceOf(1), "; ");
    for (const int pod : {0, 1}) {
      const std::string in = absl::StrCat("ip -n ", NamespaceOf(pod));
      absl::StrAppend(&make, in, " addr add 10.99.", rail, ".", pod + 1, "/24 dev rail", rail, "; ",
                      in, " link set rail", rail, " up; ");
    }
  }
  if (!Shell(make)) Die("cannot make network namespaces: run it as root");
}

void Enter(int pod) {
  const int fd =
      ::open(absl::StrCat("/run/netns/", NamespaceOf(pod)).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) Die("cannot enter a network namespace");
}

// ---- Ranks ----

void Set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

// Returns the most that a rank has spent, of each.
Spent Run(const Case& what) {
  if (what.pods > 1) MakePods();
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) Die("no pipe");
  std::vector<pid_t> children;
  for (int rank = 0; rank < what.ranks; ++rank) {
    children.push_back(::fork());
    if (children.back() < 0) Die("cannot fork");
    if (children.back() != 0) continue;
    Set("RANK", absl::StrCat(rank));
    Set("WORLD_SIZE", absl::StrCat(what.ranks));
    const int pod = rank * what.pods / what.ranks;
    if (what.pods > 1) Enter(pod);
    Set("MASTER_ADDR", what.pods > 1 ? "10.99.0.1" : "127.0.0.1");
    Set("MASTER_PORT", "29517");
    Set("RAILHEAD_POD", absl::StrCat("pod ", pod));
    Set("RAILHEAD_TRANSPORT", what.transport);
    Set("RAILHEAD_SOCKET_IFNAME", what.pods > 1 ? "rail0,rail1" : "lo");
    Set("RAILHEAD_METRICS_PORT", "0");
    const Spent spent = Measure();
    if (::write(pipe[1], &spent, sizeof spent) != sizeof spent) Die("cannot write");
    std::_Exit(0);
  }
  ::close(pipe[1]);
  Spent most;
  Spent one;
  while (::read(pipe[0], &one, sizeof one) == sizeof one) {
    most = {std::max(most.seconds, one.seconds), std::max(most.descriptors, one.descriptors),
            std::max(most.threads, one.threads), std::max(most.bytes, one.bytes)};
  }
  ::close(pipe[0]);
  for (const pid_t child : children) {
    int status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0) Die("a rank failed");
  }
  if (what.pods > 1) RemovePods();
  return most;
}

int RunAll() {
  std::printf(
      "| ranks | pods | transport | time | goal | descriptors | threads | memory |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const Case& what : kCases) {
    const Spent spent = Run(what);
    std::printf("| %d | %d | %s | %.1f ms | %s | %.1f | %.1f | %.0f KiB |\n", what.ranks, what.pods,
                what.name, 1e3 * spent.seconds / kFurther, what.goal,
                static_cast<double>(spent.descriptors) / kFurther,
                static_cast<double>(spent.threads) / kFurther,
                static_cast<double>(spent.bytes) / 1024 / kFurther);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace railhead

int main() { return railhead::RunAll(); }
