// SPDX-License-Identifier: Apache-2.0
//
// What a small message costs a rank, and that peers with which nothing goes on add nothing to it.
// Polls and system calls are counted, since times would depend on the machine.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/rails/mesh.h"
#include "runtime/rails/peer.h"
#include "runtime/testing/fake_link.h"
#include "runtime/testing/tcp_pair.h"

namespace railhead::rails {
namespace {

using railhead::testing::FakeLink;

std::unique_ptr<Mesh> MeshOf(std::map<int, std::unique_ptr<Peer>> peers) {
  std::unique_ptr<Mesh> mesh = *Mesh::Create(std::move(peers), {});
  mesh->Begin(absl::Seconds(60));
  return mesh;
}

collectives::ReceiveBuffer Into(std::vector<std::byte>& bytes) {
  collectives::ReceiveBuffer buffer;
  buffer.data = bytes.data();
  buffer.size = bytes.size();
  return buffer;
}

// They are looked at now and then. A mesh that looks at all of them each time does so at every
// Progress.
TEST(MessageCostTest, NotEveryLookIsAtIdlePeers) {
  std::map<int, std::unique_ptr<Peer>> peers;
  std::vector<std::unique_ptr<Peer>> others;
  std::vector<FakeLink*> idle;
  for (int rank = 1; rank < 9; ++rank) {
    auto [a, b] = railhead::testing::FakePair();
    if (rank > 1) idle.push_back(a.get());
    const auto rail = [](std::unique_ptr<FakeLink> link) {
      std::vector<Rail> rails;
      rails.push_back({{0, "eth0", 0, "tcp"}, std::move(link)});
      return rails;
    };
    peers[rank] = std::make_unique<Peer>(absl::StrCat("rank ", rank), rail(std::move(a)));
    others.push_back(std::make_unique<Peer>("rank 0", rail(std::move(b))));
  }
  const std::unique_ptr<Mesh> mesh = MeshOf(std::move(peers));
  const auto polls = [&idle] {
    uint64_t sum = 0;
    for (const FakeLink* link : idle) sum += link->polls;
    return sum;
  };
  std::vector<std::byte> bytes(8);
  int without = 0;
  for (int i = 0; i < 200; ++i) {
    const uint64_t ticket = mesh->PostReceive(1, Into(bytes));
    others.front()->PostSend(bytes);
    while (!mesh->ReceiveDone(1, ticket)) {
      const uint64_t before = polls();
      ASSERT_TRUE(mesh->Progress().ok());
      without += polls() == before ? 1 : 0;
    }
  }
  EXPECT_GT(without, 0);
}

// A sanitizer's runtime has system calls of its own.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

// Two ranks in one thread that send each other a few bytes over TCP rails, beside peers of both
// with which they are connected and idle.
class PingPong {
 public:
  PingPong(size_t rails, int idle) {
    std::map<int, std::unique_ptr<Peer>> peers_a;
    std::map<int, std::unique_ptr<Peer>> peers_b;
    for (int rank = 1; rank <= 1 + idle; ++rank) {
      std::vector<Rail> of_a;
      std::vector<Rail> of_b;
      for (size_t rail = 0; rail < rails; ++rail) {
        railhead::testing::TcpPair pair = railhead::testing::ConnectedTcp();
        const RailName name{static_cast<int>(rail), "lo", 0, "tcp"};
        of_a.push_back({name, std::move(pair.a)});
        of_b.push_back({name, std::move(pair.b)});
      }
      peers_a[rank] = std::make_unique<Peer>("a peer", std::move(of_a));
      peers_b[rank] = std::make_unique<Peer>("a peer", std::move(of_b));
    }
    a_ = MeshOf(std::move(peers_a));
    b_ = MeshOf(std::move(peers_b));
  }

  bool ThereAndBack() { return Send(*a_, *b_) && Send(*b_, *a_); }

 private:
  bool Send(Mesh& from, Mesh& to) {
    const Mesh::Ticket ticket = to.PostReceive(1, Into(in_));
    from.PostSend(1, out_);
    while (!to.ReceiveDone(1, ticket)) {
      if (!to.Progress().ok()) return false;
    }
    return true;
  }

  std::unique_ptr<Mesh> a_;
  std::unique_ptr<Mesh> b_;
  std::vector<std::byte> in_ = std::vector<std::byte>(8);
  std::vector<std::byte> out_ = std::vector<std::byte>(8);
};

// The system calls of each round of a process that calls getppid before every one.
std::vector<size_t> TraceRounds(pid_t child) {
  std::vector<size_t> calls;
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return calls;
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  for (int deliver = 0; ::ptrace(PTRACE_SYSCALL, child, nullptr, deliver) == 0;) {
    if (::waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) break;
    deliver = WSTOPSIG(status);
    if (deliver != (SIGTRAP | 0x80)) continue;
    deliver = 0;
    __ptrace_syscall_info info{};
    ::ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) continue;
    if (info.entry.nr == SYS_getppid) {
      calls.push_back(0);
    } else if (!calls.empty()) {
      ++calls.back();
    }
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return calls;
}

constexpr size_t kRounds = 200;

// Returns the system calls of most rounds; in some, ranks also look after their rails and idle
// peers. `prepare` returns what a round does, and whether it went well.
size_t CallsOfARound(const std::function<std::function<bool()>()>& prepare) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(100);
    const std::function<bool()> round = prepare();
    bool done = true;
    for (int i = 0; i < 20; ++i) done = round() && done;
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(2);
    ::raise(SIGSTOP);
    for (size_t i = 0; i < kRounds && done; ++i) {
      ::syscall(SYS_getppid);
      done = round();
    }
    ::_exit(done ? 0 : 1);
  }
  std::vector<size_t> calls = TraceRounds(child);
  EXPECT_EQ(calls.size(), kRounds) << "is ptrace allowed here?";
  if (calls.empty()) return SIZE_MAX;
  std::nth_element(calls.begin(), calls.begin() + kRounds / 2, calls.end());
  return calls[kRounds / 2];
}

TEST(MessageCostTest, FewSystemCallsWhoeverElseIsConnected) {
  for (const size_t rails : {size_t{1}, size_t{2}}) {
    for (const int idle : {0, 8}) {
      const size_t calls = CallsOfARound([&] {
        auto ranks = std::make_shared<PingPong>(rails, idle);
        return [ranks] { return ranks->ThereAndBack(); };
      });
      EXPECT_LE(calls, 6U) << rails << " rails, " << idle << " idle peers";
    }
  }
}

// A rank that waits longer than it may spin, time after time, stops spinning but for a trial now
// and then.
TEST(MessageCostTest, LongWaitsAreSleptThrough) {
  const size_t calls = CallsOfARound([] {
    railhead::testing::TcpPair pair = railhead::testing::ConnectedTcp();
    std::vector<Rail> rails;
    rails.push_back({{0, "lo", 0, "tcp"}, std::move(pair.a)});
    std::map<int, std::unique_ptr<Peer>> peers;
    peers[1] = std::make_unique<Peer>("a peer", std::move(rails));
    const std::shared_ptr<Mesh> mesh = MeshOf(std::move(peers));
    const auto bytes = std::make_shared<std::vector<std::byte>>(8);
    mesh->PostReceive(1, Into(*bytes));
    const std::shared_ptr<transport::Link> other = std::move(pair.b);
    return [mesh, bytes, other] {
      mesh->Begin(absl::Milliseconds(1));
      return absl::IsDeadlineExceeded(mesh->Progress());
    };
  });
  EXPECT_LE(calls, 8U);
}

#endif

}  // namespace
}  // namespace railhead::rails
