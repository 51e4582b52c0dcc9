// SPDX-License-Identifier: Apache-2.0
//
// What the benches of streams share: messages from one process of this machine to another, by a
// rail and by a bare socket. Errors end the process.
#ifndef RAILHEAD_RUNTIME_TESTING_STREAMS_H_
#define RAILHEAD_RUNTIME_TESTING_STREAMS_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/net/fd.h"
#include "runtime/testing/bench.h"

namespace railhead::testing {

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

// Moves `bytes` in messages of `size`, and an answer at the end.
inline void PlayRound(Stream& stream, int rank, std::byte* data, size_t size, size_t bytes) {
  for (size_t done = 0; done < bytes; done += size) {
    if (rank == 0) {
      stream.Send(data, size);
    } else {
      stream.Receive(data, size);
    }
  }
  rank == 0 ? stream.AwaitAnswer() : stream.Answer();
}

// Rank 1 listens.
inline net::Fd Connect(net::Fd listener, int rank) {
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

inline double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of the ratios of rounds that followed each other.
inline double MedianRatio(const std::vector<double>& rates, const std::vector<double>& of) {
  std::vector<double> ratios;
  ratios.reserve(rates.size());
  for (size_t i = 0; i < rates.size(); ++i) ratios.push_back(rates[i] / of[i]);
  return Median(ratios);
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_STREAMS_H_
