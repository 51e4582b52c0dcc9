// SPDX-License-Identifier: Apache-2.0
//
// What the tests of several ranks in one process share.
#ifndef RAILHEAD_RUNTIME_TESTING_RANKS_H_
#define RAILHEAD_RUNTIME_TESTING_RANKS_H_

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/now.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"

namespace railhead::testing {

// Takes the port for this process and its forked children, until they end. Returns false if another
// test has it. Nobody else asks for the name of the socket, which is no file.
inline bool ReservePort(int port) {
  const std::string name = absl::StrCat("railhead-test-port-", port);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int reservation = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (reservation < 0) return false;
  if (::bind(reservation, reinterpret_cast<const sockaddr*>(&address), size) == 0) return true;
  ::close(reservation);
  return false;
}

// A port on which nothing listens. The kernel gives it to nobody who asks for any port, since those
// are all above 32768 (net.ipv4.ip_local_port_range), and no test that runs beside this one gets
// it: it is still free when somebody listens there in a while.
inline int FreePort() {
  constexpr int kFirst = 12000;
  constexpr int kCount = 8000;  // tests/kube take theirs from 20000 on
  constexpr int kPortsOfAProcess = 64;
  static std::atomic<int> next{::getpid() * kPortsOfAProcess % kCount};
  while (true) {
    const int port = kFirst + next.fetch_add(1) % kCount;
    if (ReservePort(port) &&
        net::Listen(*net::IpAddress::Parse("127.0.0.1"), static_cast<uint16_t>(port)).ok()) {
      return port;
    }
  }
}

// Runs body(rank) for every rank, each in a thread of its own, and returns what they returned.
// (In optionals: the elements of a vector<bool> share their bytes, which threads must not.)
template <class Body>
auto RunRanks(int world_size, Body body) {
  using Result = decltype(body(0));
  std::vector<std::optional<Result>> slots(static_cast<size_t>(world_size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([rank, &body, &slots] { slots[static_cast<size_t>(rank)] = body(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Result> results;
  for (std::optional<Result>& slot : slots) results.push_back(*std::move(slot));
  return results;
}

// A plain connection to the loopback, as a stranger opens it. Tries until somebody listens.
inline net::Fd DialStranger(int port) {
  const net::IpAddress loopback = *net::IpAddress::Parse("127.0.0.1");
  const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
  while (MonotonicNow() < deadline) {
    absl::StatusOr<net::Fd> fd =
        net::Dial(loopback, static_cast<uint16_t>(port), std::nullopt, deadline);
    if (fd.ok()) return *std::move(fd);
    absl::SleepFor(absl::Milliseconds(5));
  }
  return net::Fd();
}

// Whether the other side closes this connection within 20 s.
inline bool IsClosedByPeer(const net::Fd& fd) {
  const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
  std::string ignored;
  while (net::WaitReadable(fd.get(), deadline).ok()) {
    const absl::StatusOr<bool> open = net::ReceiveSome(fd.get(), 4096, &ignored);
    if (!open.ok() || !*open) return true;
  }
  return false;
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_RANKS_H_
