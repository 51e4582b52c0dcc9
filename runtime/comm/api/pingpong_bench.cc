// SPDX-License-Identifier: Apache-2.0
//
// Round trip of an 8-byte message over two TCP rails, between two ranks of a job whose other ranks
// are connected and idle; compared with a job of these two ranks. Ranks are processes of this
// machine. The rounds of both jobs alternate, so that a disturbance affects both.
//
// usage: railhead_pingpong_bench        a table in Markdown
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/testing/bench.h"
#include "runtime/testing/ranks.h"

namespace railhead {
namespace {

using testing::Die;
using testing::Must;
using testing::Now;

constexpr int kRounds = 20;
constexpr int kMessages = 2000;
constexpr double kGoal = 1.15;

// One of a job's ranks; when told, through `go`, rank 0 plays a round and tells its time. All stay
// until the other end of `stay` is closed.
[[noreturn]] void RunRank(int rank, int go, int told, int stay) {
  rhComm_t comm = nullptr;
  if (rhCommInitFromEnv(&comm) != rhSuccess) Die(rhGetLastError(nullptr));
  Must(rhBarrier(comm, nullptr), comm);
  uint64_t word = 0;
  for (int round = 0; rank < 2 && round <= kRounds; ++round) {
    char ignored = 0;
    if (rank == 0 && ::read(go, &ignored, 1) != 1) Die("nobody says go");
    const double begin = Now();
    for (int i = 0; i < kMessages; ++i) {
      if (rank == 0) Must(rhSend(&word, sizeof word, rhUint8, 1, comm, nullptr), comm);
      Must(rhRecv(&word, sizeof word, rhUint8, 1 - rank, comm, nullptr), comm);
      if (rank == 1) Must(rhSend(&word, sizeof word, rhUint8, 0, comm, nullptr), comm);
    }
    const double seconds = Now() - begin;
    if (rank == 0 && ::write(told, &seconds, sizeof seconds) != sizeof seconds) Die("no pipe");
  }
  char ignored = 0;
  while (::read(stay, &ignored, 1) > 0) {
  }
  Must(rhCommDestroy(comm), comm);
  std::_Exit(0);
}

class Job {
 public:
  explicit Job(int world) {
    const int port = testing::FreePort();
    int go[2];
    int told[2];
    int stay[2];
    if (::pipe(go) != 0 || ::pipe(told) != 0 || ::pipe(stay) != 0) Die("no pipe");
    ::setenv("WORLD_SIZE", absl::StrCat(world).c_str(), 1);
    ::setenv("MASTER_PORT", absl::StrCat(port).c_str(), 1);
    for (int rank = 0; rank < world; ++rank) {
      const pid_t child = ::fork();
      if (child < 0) Die("cannot fork");
      if (child == 0) {
        ::setenv("RANK", absl::StrCat(rank).c_str(), 1);
        ::close(stay[1]);
        RunRank(rank, go[0], told[1], stay[0]);
      }
      ranks_.push_back(child);
    }
    // Once all ranks are gone, who reads what they tell must not wait for more.
    for (const int of_ranks : {go[0], told[1], stay[0]}) ::close(of_ranks);
    go_ = go[1];
    told_ = told[0];
    stay_ = stay[1];
    Play();  // warms up
  }
  // Returns the round-trip time in microseconds.
  double Play() {
    double seconds = 0;
    if (::write(go_, "", 1) != 1 || ::read(told_, &seconds, sizeof seconds) != sizeof seconds) {
      Die("a rank has failed");
    }
    return 1e6 * seconds / kMessages;
  }
  void End() {
    ::close(stay_);
    for (const pid_t rank : ranks_) {
      int status = 0;
      if (::waitpid(rank, &status, 0) != rank || status != 0) Die("a rank has failed");
    }
  }

 private:
  int go_ = -1;
  int told_ = -1;
  int stay_ = -1;
  std::vector<pid_t> ranks_;
};

int Run(int world) {
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("RAILHEAD_TRANSPORT", "tcp", 1);
  ::setenv("RAILHEAD_SOCKET_IFNAME", "lo,lo", 1);
  ::setenv("RAILHEAD_METRICS_PORT", "0", 1);
  // The one that is begun last ends first: it holds the other's pipes.
  Job alone(2);
  Job among(world);
  std::vector<double> few;
  std::vector<double> many;
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    few.push_back(alone.Play());
    many.push_back(among.Play());
    ratios.push_back(many.back() / few.back());
  }
  among.End();
  alone.End();
  const auto median = [](std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
    return values[values.size() / 2];
  };
  std::printf("| 8 B there and back | median of %d rounds | times as long | goal | reached |\n",
              kRounds);
  std::printf("|---|---|---|---|---|\n");
  std::printf("| 2 ranks alone | %.1f us | | | |\n", median(few));
  std::printf("| among %d idle ranks | %.1f us | %.2f | <= %.2f | %s |\n", world - 2, median(many),
              median(ratios), kGoal, median(ratios) <= kGoal ? "yes" : "no");
  return 0;
}

}  // namespace
}  // namespace railhead

// The largest world whose ranks are all connected from the start.
int main(int argc, char** argv) { return railhead::Run(argc > 1 ? std::atoi(argv[1]) : 64); }
