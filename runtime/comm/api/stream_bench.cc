// SPDX-License-Identifier: Apache-2.0
//
// How fast one TCP rail carries large messages from one rank to another, beside a bare socket that
// does the same, without and with an answer to each message. Sender and receiver are processes of
// this machine. The rounds of both take turns, so that what disturbs one disturbs the other.
//
// usage: railhead_stream_bench        a table in Markdown
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/net/fd.h"
#include "runtime/testing/bench.h"
#include "runtime/testing/ranks.h"
#include "runtime/testing/streams.h"

namespace railhead {
namespace {

using testing::AnsweredSocket;
using testing::BareSocket;
using testing::Die;
using testing::Median;
using testing::MedianRatio;
using testing::Now;
using testing::PlayRound;
using testing::Rail;
using testing::Stream;

constexpr int kRounds = 21;
constexpr size_t kRoundBytes = size_t{256} << 20;
constexpr size_t kSizes[] = {size_t{256} << 10, size_t{1} << 20, size_t{8} << 20, size_t{64} << 20};
constexpr size_t kGoalSize = size_t{8} << 20;
constexpr double kGoal = 0.95;

void RunRank(int rank, net::Fd listener) {
  BareSocket bare(testing::Connect(std::move(listener), rank));
  AnsweredSocket answered(bare);
  Rail rail(rank);
  Stream* const streams[] = {&bare, &answered, &rail};
  std::vector<std::byte> data(*std::max_element(std::begin(kSizes), std::end(kSizes)),
                              std::byte{7});
  if (rank == 0) {
    std::printf(
        "| size | bare socket | with answers | Railhead | of bare | of bare with answers | goal | "
        "reached |\n|---|---|---|---|---|---|---|---|\n");
  }
  for (const size_t size : kSizes) {
    std::array<std::vector<double>, std::size(streams)> rates;
    for (int round = 0; round <= kRounds; ++round) {
      for (size_t i = 0; i < std::size(streams); ++i) {
        const double begin = Now();
        PlayRound(*streams[i], rank, data.data(), size, kRoundBytes);
        // The first round warms up.
        if (round > 0) rates[i].push_back(kRoundBytes / (Now() - begin) / 1e9);
      }
    }
    if (rank != 0) continue;
    std::printf("| %zu KiB |", size >> 10);
    for (const std::vector<double>& rate : rates) std::printf(" %.2f GB/s |", Median(rate));
    const double ratio = MedianRatio(rates[2], rates[0]);
    std::printf(" %.1f %% | %.1f %% |", 100 * ratio, 100 * MedianRatio(rates[2], rates[1]));
    if (size == kGoalSize) {
      std::printf(" >= %.0f %% | %s |\n", 100 * kGoal, ratio >= kGoal ? "yes" : "no");
    } else {
      std::printf(" | |\n");
    }
  }
  std::fflush(stdout);
}

int Run() {
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("RAILHEAD_TRANSPORT", "tcp", 1);
  ::setenv("RAILHEAD_SOCKET_IFNAME", "lo", 1);
  ::setenv("RAILHEAD_METRICS_PORT", "0", 1);
  ::setenv("MASTER_PORT", absl::StrCat(testing::FreePort()).c_str(), 1);
  // Blocking, unlike those of net::Listen.
  net::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.valid() || ::listen(listener.get(), 1) != 0) Die("listen");
  const pid_t child = ::fork();
  if (child < 0) Die("cannot fork");
  RunRank(child == 0 ? 1 : 0, std::move(listener));
  if (child == 0) return 0;
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) Die("rank 1 has failed");
  return 0;
}

}  // namespace
}  // namespace railhead

int main() { return railhead::Run(); }
