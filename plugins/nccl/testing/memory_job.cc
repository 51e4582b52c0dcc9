// SPDX-License-Identifier: Apache-2.0
//
// Two processes of a job exchange messages between registered memory over the rails of their pods,
// as NCCL does: rank 1 sends, rank 0 receives and checks every byte. For tests on nodes with real
// verbs (tests/e2e/nccl_memory.py).
//
// The memory that stands for a GPU's is host memory that is registered like it by nvidia-peermem:
// only NICs access it but for the checks, and software RDMA takes it. RANK and MASTER_ADDR are
// those of the job; the argument is the number of rounds.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
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
#include "runtime/base/now.h"
#include "runtime/comm/api/handle.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"

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

void Must(const absl::Status& status) {
  if (!status.ok()) Die(std::string(status.message()));
}

void GiveHandle(const HandleBytes& handle) {
  const absl::Time deadline = MonotonicNow() + kPatience;
  const net::Fd listener = Must(net::Listen(std::nullopt, kPort));
  Must(net::WaitReadable(listener.get(), deadline));
  const net::Fd peer = Must(net::Accept(listener.get()));
  Must(net::SendAll(peer.get(), {handle.data(), handle.size()}, deadline));
}

absl::StatusOr<HandleBytes> AskForHandle(const char* host, absl::Time deadline) {
  const absl::StatusOr<std::vector<net::IpAddress>> addresses = net::Resolve(host, deadline);
  if (!addresses.ok()) return addresses.status();
  const absl::StatusOr<net::Fd> peer = net::Dial(addresses->front(), kPort, std::nullopt, deadline);
  if (!peer.ok()) return peer.status();
  std::string bytes;
  HandleBytes handle{};
  while (bytes.size() < handle.size()) {
    if (absl::Status some = net::WaitReadable(peer->get(), deadline); !some.ok()) return some;
    const absl::StatusOr<bool> more =
        net::ReceiveSome(peer->get(), handle.size() - bytes.size(), &bytes);
    if (!more.ok()) return more.status();
    if (!*more) return absl::UnavailableError("the connection was closed");
  }
  std::copy(bytes.begin(), bytes.end(), handle.begin());
  return handle;
}

HandleBytes TakeHandle(const char* host) {
  const absl::Time deadline = MonotonicNow() + kPatience;
  absl::StatusOr<HandleBytes> handle = absl::UnknownError("");
  // Rank 0 may not listen yet.
  while (!handle.ok() && MonotonicNow() < deadline) {
    handle = AskForHandle(host, deadline);
    if (!handle.ok()) absl::SleepFor(absl::Milliseconds(200));
  }
  return Must(std::move(handle));
}

void Await(Connection& connection, Connection::Request* request) {
  for (const absl::Time end = MonotonicNow() + kPatience; MonotonicNow() < end;) {
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
    for (const absl::Time end = MonotonicNow() + kPatience;
         connection == nullptr && MonotonicNow() < end;) {
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
          Must(connection->Flush(*piece.memory, piece.data));
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
  connection->Settle(MonotonicNow() + kPatience);
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
