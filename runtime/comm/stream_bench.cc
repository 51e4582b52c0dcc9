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

// The same socket with a rail's semantics: a message is sent when the receiver has confirmed it.
class AnsweredSocket : public Stream {
 public:
  explicit AnsweredSocket(BareSocket& socket) : socket_(socket) {}
  void Send(std::byte* data, size_t size) override {
    socket_.Send(data, size);
    socket_.AwaitAnswer();
  }
  void Receive(std::byte* data, size_t size) override {
    socket_.Receive(data, size);
    socket_.Answer();
  }
  void Answer() override { socket_.Answer(); }
  void AwaitAnswer() override { socket_.AwaitAnswer(); }

 private:
  BareSocket& socket_;
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

// Of the ratios of rounds that followed each other.
double MedianRatio(const std::vector<double>& rates, const std::vector<double>& of) {
  std::vector<double> ratios;
  ratios.reserve(rates.size());
  for (size_t i = 0; i < rates.size(); ++i) ratios.push_back(rates[i] / of[i]);
  return Median(ratios);
}

void RunRank(int rank, net::Fd listener) {
  BareSocket bare(Connect(std::move(listener), rank));
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
        PlayRound(*streams[i], rank, data.data(), size);
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
