// SPDX-License-Identifier: Apache-2.0
//
// Two processes of a job exchange messages between registered memory over the rails of their pods,
// as NCCL does: rank 1 sends, rank 0 receives and checks every byte. For tests on nodes with real
// verbs (tests/e2e/nccl_memory.py).
//
// The memory that stands for a GPU's is host memory that is registered like it by nvidia-peermem:
// only NICs access it but for the checks, and software RDMA takes it. RANK and MASTER_ADDR are
// those of the job; the argument is the number of rounds.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "plugins/nccl/connection.h"
#include "plugins/nccl/listener.h"
#include "plugins/nccl/local_rails.h"
#include "plugins/nccl/memory.h"
#include "runtime/comm/api/handle.h"

namespace railhead::nccl {
namespace {

constexpr uint16_t kPort = 29777;  // on which the handle is given
constexpr absl::Duration kPatience = absl::Seconds(120);
constexpr size_t kBytes = size_t{1} << 20;
constexpr std::array<size_t, 7> kSizes = {0, 1, 100, 16'384, 16'385, 300'000, kBytes};
constexpr int kDone = 7;  // tag of the last message

[[noreturn]] void Die(const std::string& why) {
  std::printf("failed: %s\n", why.c_str());
  std::exit(1);
}
template <class Value>
Value Must(absl::StatusOr<Value> value) {
  if (!value.ok()) Die(std::string(value.status().message()));
  return *std::move(value);
}

void GiveHandle(const HandleBytes& handle) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(kPort);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 ||
      ::listen(listener, 1) != 0) {
    Die("cannot listen");
  }
  const int peer = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (::write(peer, handle.data(), handle.size()) != static_cast<ssize_t>(handle.size())) {
    Die("cannot give the handle");
  }
  ::close(peer);
  ::close(listener);
}

HandleBytes TakeHandle(const char* host) {
  HandleBytes handle{};
  for (const absl::Time end = absl::Now() + kPatience; absl::Now() < end;) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host, std::to_string(kPort).c_str(), &hints, &found) == 0) {
      const int peer = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const bool got = ::connect(peer, found->ai_addr, found->ai_addrlen) == 0 &&
                       ::recv(peer, handle.data(), handle.size(), MSG_WAITALL) ==
                           static_cast<ssize_t>(handle.size());
      ::close(peer);
      ::freeaddrinfo(found);
      if (got) return handle;
    }
    absl::SleepFor(absl::Milliseconds(200));
  }
  Die("rank 0 gives no handle");
}

void Await(Connection& connection, Connection::Request* request) {
  for (const absl::Time end = absl::Now() + kPatience; absl::Now() < end;) {
    if (Must(connection.Test(request, nullptr))) return;
  }
  Die("a request does not end");
}

std::byte Value(uint64_t message, size_t at) {
  return static_cast<std::byte>(message * 31 + at * 7 + at / 4096);
}

struct Piece {
  std::byte* data;
  std::unique_ptr<Memory> memory;
};
Piece Make(const Connection& connection, bool on_gpu) {
  auto* const data = static_cast<std::byte*>(
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (data == MAP_FAILED) Die("no memory");
  return {data, Must(connection.Register({data, kBytes}, on_gpu, nullptr))};
}

int Run(bool sends, const char* host, int rounds) {
  const std::unique_ptr<LocalRails> rails = Must(LocalRails::Open(Must(comm::ReadOptions({}))));
  if (!rails->gpu_memory().why_not.empty()) Die(rails->gpu_memory().why_not);
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Connection> connection;
  if (sends) {
    connection = Must(Connect(*rails, TakeHandle(host)));
  } else {
    listener = Must(Listener::Start(*rails));
    GiveHandle(listener->handle());
    for (const absl::Time end = absl::Now() + kPatience;
         connection == nullptr && absl::Now() < end;) {
      connection = Must(listener->Accept());
    }
    if (connection == nullptr) Die("nobody connects");
  }
  std::array<Piece, 2> pieces = {Make(*connection, false), Make(*connection, true)};
  uint64_t message = 0;
  uint64_t wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    for (const Piece& piece : pieces) {
      for (const size_t size : kSizes) {
        ++message;
        if (sends) {
          for (size_t i = 0; i < size; ++i) piece.data[i] = Value(message, i);
          Await(*connection, Must(connection->Send({piece.data, size}, 1, piece.memory.get())));
          continue;
        }
        std::memset(piece.data, 0xee, kBytes);
        Await(*connection, Must(connection->Receive({{piece.data, size, 1, piece.memory.get()}})));
        if (piece.memory->on_device()) {
          const absl::Status flushed = connection->Flush(*piece.memory, piece.data);
          if (!flushed.ok()) Die(std::string(flushed.message()));
        }
        for (size_t i = 0; i < size; ++i) wrong += piece.data[i] != Value(message, i) ? 1 : 0;
      }
    }
    std::printf("round %d\n", round);
    std::fflush(stdout);
  }
  std::byte last{};
  Connection::Request* const done = sends ? Must(connection->Send({&last, 1}, kDone))
                                          : Must(connection->Receive({{&last, 1, kDone}}));
  Await(*connection, done);
  connection->Settle(absl::Now() + kPatience);
  for (Piece& piece : pieces) piece.memory.reset();
  std::printf("%lu messages, %lu wrong bytes\n", static_cast<unsigned long>(message),
              static_cast<unsigned long>(wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace railhead::nccl

int main(int argc, char** argv) {
  const char* const rank = std::getenv("RANK");
  const char* const host = std::getenv("MASTER_ADDR");
  if (rank == nullptr || host == nullptr) return 2;
  return railhead::nccl::Run(std::string(rank) == "1", host, argc > 1 ? std::atoi(argv[1]) : 1);
}
