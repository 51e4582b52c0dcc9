// SPDX-License-Identifier: Apache-2.0
//
// How fast one TCP rail carries large messages from one rank to another, beside a bare socket that
// does the same. Sender and receiver are processes of this machine. The rounds of both take turns,
// so that what disturbs one disturbs the other.
//
// usage: railhead_stream_bench        a table in Markdown
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/net/fd.h"
#include "runtime/testing/bench.h"
#include "runtime/testing/ranks.h"

namespace railhead {
namespace {

using testing::Die;
using testing::Must;
using testing::Now;

constexpr int kRounds = 21;
constexpr size_t kRoundBytes = size_t{256} << 20;
constexpr size_t kSizes[] = {size_t{256} << 10, size_t{1} << 20, size_t{8} << 20, size_t{64} << 20};
constexpr size_t kGoalSize = size_t{8} << 20;
constexpr double kGoal = 0.95;

// Moves messages from rank 0 to rank 1.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void Send(std::byte* data, size_t size) = 0;
  virtual void Receive(std::byte* data, size_t size) = 0;
  // The other direction, for the answer that ends a round.
  virtual void Answer() = 0;
  virtual void AwaitAnswer() = 0;
};

class Rail : public Stream {
 public:
  explicit Rail(int rank) {
    ::setenv("RANK", absl::StrCat(rank).c_str(), 1);
    if (rhCommInitFromEnv(&comm_) != rhSuccess) Die(rhGetLastError(nullptr));
  }
  ~Rail() override { Must(rhCommDestroy(comm_), comm_); }
  void Send(std::byte* data, size_t size) override {
    Must(rhSend(data, size, rhUint8, 1, comm_, nullptr), comm_);
  }
  void Receive(std::byte* data, size_t size) override {
    Must(rhRecv(data, size, rhUint8, 0, comm_, nullptr), comm_);
  }
  void Answer() override { Must(rhSend(&word_, sizeof word_, rhUint8, 0, comm_, nullptr), comm_); }
  void AwaitAnswer() override {
    Must(rhRecv(&word_, sizeof word_, rhUint8, 1, comm_, nullptr), comm_);
  }

 private:
  rhComm_t comm_ = nullptr;
  uint64_t word_ = 0;
};

class BareSocket : public Stream {
 public:
  explicit BareSocket(net::Fd socket) : socket_(std::move(socket)) {}
  void Send(std::byte* data, size_t size) override {
    while (size > 0) {
      const ssize_t sent = ::send(socket_.get(), data, size, MSG_NOSIGNAL);
      if (sent <= 0) Die("send");
      data += sent;
      size -= static_cast<size_t>(sent);
    }
  }
  void Receive(std::byte* data, size_t size) override {
    while (size > 0) {
      const ssize_t received = ::recv(socket_.get(), data, size, 0);
      if (received <= 0) Die("recv");
      data += received;
      size -= static_cast<size_t>(received);
    }
  }
  void Answer() override { Send(&word_, 1); }
  void AwaitAnswer() override { Receive(&word_, 1); }

 private:
  net::Fd socket_;
  std::byte word_{};
};

void PlayRound(Stream& stream, int rank, std::byte* data, size_t size) {
  for (size_t done = 0; done < kRoundBytes; done += size) {
    if (rank == 0) {
      stream.Send(data, size);
    } else {
      stream.Receive(data, size);
    }
  }
  rank == 0 ? stream.AwaitAnswer() : stream.Answer();
}

net::Fd Connect(net::Fd listener, int rank) {
  if (rank == 1) return net::Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    Die("getsockname");
  }
  net::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    Die("connect");
  }
  return socket;
}

// Of as many values as there are rounds.
double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
  return values[values.size() / 2];
}

void RunRank(int rank, net::Fd listener) {
  BareSocket bare(Connect(std::move(listener), rank));
  Rail rail(rank);
  std::vector<std::byte> data(*std::max_element(std::begin(kSizes), std::end(kSizes)),
                              std::byte{7});
  if (rank == 0) {
    std::printf("| size | bare socket | Railhead | of bare | goal | reached |\n");
    std::printf("|---|---|---|---|---|---|\n");
  }
  for (const size_t size : kSizes) {
    std::vector<double> bares;
    std::vector<double> rails;
    std::vector<double> ratios;
    for (int round = 0; round <= kRounds; ++round) {
      const double begin = Now();
      PlayRound(bare, rank, data.data(), size);
      const double middle = Now();
      PlayRound(rail, rank, data.data(), size);
      const double end = Now();
      if (round == 0) continue;  // warms up
      bares.push_back(kRoundBytes / (middle - begin) / 1e9);
      rails.push_back(kRoundBytes / (end - middle) / 1e9);
      ratios.push_back(rails.back() / bares.back());
    }
    if (rank != 0) continue;
    std::printf("| %zu KiB | %.2f GB/s | %.2f GB/s | %.1f %% | ", size >> 10, Median(bares),
                Median(rails), 100 * Median(ratios));
    if (size == kGoalSize) {
      std::printf(">= %.0f %% | %s |\n", 100 * kGoal, Median(ratios) >= kGoal ? "yes" : "no");
    } else {
      std::printf("| |\n");
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
