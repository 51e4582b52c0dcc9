// SPDX-License-Identifier: Apache-2.0
//
// The end of ranks that are processes, while the network between them fails: a rank that has left
// has not died.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/hang_observer.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead::bootstrap {
namespace {

using railhead::testing::FreePort;
using railhead::testing::Process;

absl::Time In(double seconds) { return MonotonicNow() + absl::Seconds(seconds); }

// A word from one process to another. Forked children have it, too.
class Signal {
 public:
  Signal() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    read_ = net::Fd(ends[0]);
    write_ = net::Fd(ends[1]);
  }
  void Give() const { EXPECT_EQ(::write(write_.get(), "x", 1), 1); }
  // Returns false if it does not come within 20 s.
  bool Await() const { return net::WaitReadable(read_.get(), In(20)).ok(); }

 private:
  net::Fd read_;
  net::Fd write_;
};

// The network between rank 0 and a rank that calls it here: passes on bytes and ends.
class Network {
 public:
  Network() : host_port_(FreePort()) {
    listener_ = *net::Listen(*net::IpAddress::Parse("127.0.0.1"), 0);
    port_ = net::LocalAddress(listener_.get())->port;
  }
  ~Network() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Call it after all forks.
  void Start() {
    thread_ = std::thread([this] {
      while (!stop_) {
        Pump();
        absl::SleepFor(absl::Milliseconds(1));
      }
    });
  }

  int host_port() const { return host_port_; }
  int port() const { return port_; }

  // The packets of rank 0 vanish: the kernel drops them before it acknowledges them.
  void Silence() {
    sock_filter drop = {BPF_RET | BPF_K, 0, 0, 0};
    const sock_fprog program = {1, &drop};
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Line& line : lines_) {
      EXPECT_EQ(
          ::setsockopt(line.host.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
    }
  }
  void EndSilence() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int none = 0;
    for (const Line& line : lines_) {
      EXPECT_EQ(::setsockopt(line.host.get(), SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none), 0);
    }
  }
  // Passes on bytes only, from now on.
  void HoldEnds() {
    const std::lock_guard<std::mutex> lock(mutex_);
    hold_ends_ = true;
  }
  // Resets all connections.
  void Forget() {
    const std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_FALSE(lines_.empty());
    for (Line& line : lines_) {
      net::CloseByReset(std::move(line.guest));
      net::CloseByReset(std::move(line.host));
    }
    lines_.clear();
  }

 private:
  struct Way {
    std::string waiting;
    bool ended = false;   // by its source
    bool passed = false;  // the end
  };
  struct Line {
    net::Fd guest;
    net::Fd host;
    Way up;
    Way down;
  };

  void Pump() {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (true) {
      net::Fd guest = *net::Accept(listener_.get());
      if (!guest.valid()) break;
      absl::StatusOr<net::Fd> host =
          net::Dial(*net::IpAddress::Parse("127.0.0.1"), static_cast<uint16_t>(host_port_),
                    std::nullopt, In(20));
      if (host.ok()) lines_.push_back({std::move(guest), *std::move(host), {}, {}});
    }
    for (auto line = lines_.begin(); line != lines_.end();) {
      const bool open =
          Carry(line->guest, line->host, line->up) && Carry(line->host, line->guest, line->down);
      const bool over = line->up.passed && line->down.passed;
      if (open && !over) {
        ++line;
        continue;
      }
      if (!open) {
        net::CloseByReset(std::move(line->guest));
        net::CloseByReset(std::move(line->host));
      }
      line = lines_.erase(line);
    }
  }

  // Returns false if the connection is lost.
  bool Carry(const net::Fd& from, const net::Fd& to, Way& way) const {
    if (!way.ended) {
      const absl::StatusOr<bool> open = net::ReceiveSome(from.get(), 1 << 16, &way.waiting);
      if (!open.ok()) return false;
      way.ended = !*open;
    }
    if (!way.waiting.empty()) {
      const ssize_t sent =
          ::send(to.get(), way.waiting.data(), way.waiting.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) way.waiting.erase(0, static_cast<size_t>(sent));
    }
    if (way.ended && way.waiting.empty() && !way.passed && !hold_ends_) {
      way.passed = true;
      ::shutdown(to.get(), SHUT_WR);
    }
    return true;
  }

  const int host_port_;
  net::Fd listener_;
  int port_ = 0;
  std::mutex mutex_;
  std::list<Line> lines_;
  bool hold_ends_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// A rank of two.
std::unique_ptr<Watch> Join(int rank, const Network& network, const SilenceLimits& limits = {}) {
  JoinOptions options;
  options.rank = rank;
  options.world_size = 2;
  options.host = "127.0.0.1";
  options.port = rank == 0 ? network.host_port() : network.port();
  options.name = absl::StrCat("pod p", rank);
  options.deadline = In(20);
  absl::StatusOr<Bootstrap> bootstrap = Bootstrap::Join(std::move(options));
  EXPECT_TRUE(bootstrap.ok()) << bootstrap.status();
  return *Watch::Start(*std::move(bootstrap), limits);
}

// Rank 0 as a process: leaves when it may, and ends at once. Its output is empty if all is well.
Process StartLeaver(const Network& network, const Signal& may_leave) {
  return Process::Fork({}, [&] {
    std::unique_ptr<Watch> watch = Join(0, network);
    if (!may_leave.Await()) return std::string("no signal");
    if (!watch->Goodbye(In(20))) return std::string("the others do not leave");
    std::string verdict(watch->verdict().message());
    watch.reset();
    return verdict;
  });
}

// Time in which a process does what it has been asked for: then a failure of a test is certain.
void LetThemWork() { absl::SleepFor(absl::Milliseconds(300)); }

// Rank 0 leaves while its last frames cannot pass, and rank 1 sends to it afterwards: that must not
// reset the connection.
TEST(LeaveTest, ASilenceWhileARankLeavesIsNoDeath) {
  Network network;
  const Signal may_leave;
  Process leaver = StartLeaver(network, may_leave);
  network.Start();
  std::unique_ptr<Watch> watch = Join(1, network);
  watch->Goodbye(absl::InfinitePast());
  LetThemWork();
  network.Silence();
  may_leave.Give();
  LetThemWork();
  watch->Locate(0);
  LetThemWork();
  network.EndSilence();
  EXPECT_TRUE(watch->Goodbye(In(20)));
  EXPECT_TRUE(watch->verdict().ok()) << watch->verdict();
  watch.reset();
  EXPECT_EQ(leaver.Wait(In(20)).output, "");
}

// The old connection never works again, as after a change of the address.
TEST(LeaveTest, ARankThatLeavesDialsAnewThroughASilence) {
  Network network;
  const Signal may_leave;
  Process leaver = StartLeaver(network, may_leave);
  network.Start();
  std::unique_ptr<Watch> watch = Join(1, network);
  watch->Goodbye(absl::InfinitePast());
  LetThemWork();
  network.Silence();
  may_leave.Give();
  EXPECT_TRUE(watch->Goodbye(In(20)));
  EXPECT_TRUE(watch->verdict().ok()) << watch->verdict();
  watch.reset();
  EXPECT_EQ(leaver.Wait(In(20)).output, "");
}

// Frames that wait for a peer whose connection is lost are delivered, also at the end.
TEST(LeaveTest, ARankLeavesWhileItsPeerIsAway) {
  Network network;
  const Signal said;
  Process stayer = Process::Fork({}, [&] {
    std::unique_ptr<Watch> watch = Join(1, network);
    watch->Goodbye(absl::InfinitePast());
    said.Give();
    const bool all = watch->Goodbye(In(20));
    std::string verdict(watch->verdict().message());
    return verdict.empty() && !all ? "the others do not leave" : verdict;
  });
  network.Start();
  std::unique_ptr<Watch> watch = Join(0, network);
  ASSERT_TRUE(said.Await());
  LetThemWork();
  ASSERT_EQ(::kill(stayer.pid(), SIGSTOP), 0);
  network.Forget();
  LetThemWork();
  EXPECT_TRUE(watch->Goodbye(In(20)));
  EXPECT_TRUE(watch->verdict().ok()) << watch->verdict();
  std::thread leave([&] { watch.reset(); });
  LetThemWork();
  ASSERT_EQ(::kill(stayer.pid(), SIGCONT), 0);
  EXPECT_EQ(stayer.Wait(In(20)).output, "");
  leave.join();
}

// The end of a process never takes longer than SilenceLimits::farewell.
TEST(LeaveTest, AProcessDoesNotWaitLongForOneThatIsSilent) {
  Network network;
  const Signal said;
  Process stayer = Process::Fork({}, [&] {
    std::unique_ptr<Watch> watch = Join(1, network);
    watch->Goodbye(absl::InfinitePast());
    said.Give();
    watch->Goodbye(In(20));
    return std::string();
  });
  network.Start();
  SilenceLimits limits;
  limits.farewell = absl::Seconds(1);
  std::unique_ptr<Watch> watch = Join(0, network, limits);
  ASSERT_TRUE(said.Await());
  LetThemWork();
  ASSERT_EQ(::kill(stayer.pid(), SIGSTOP), 0);
  network.Forget();
  LetThemWork();
  EXPECT_TRUE(watch->Goodbye(In(20)));
  const absl::Time start = MonotonicNow();
  watch.reset();
  const absl::Duration waited = MonotonicNow() - start;
  EXPECT_GE(waited, limits.farewell);
  EXPECT_LT(waited, limits.farewell + absl::Seconds(4));
}

// Keeps the thread that watches busy when it is told to, and then has something to send.
class Blocker final : public HangObserver {
 public:
  void Block() { armed_ = true; }
  bool blocks() const { return blocks_; }
  void Release() { armed_ = false; }

  Pace pace() const override {
    return {absl::Milliseconds(10), absl::Seconds(20), absl::Seconds(100)};
  }
  bool Look(absl::Time /*now*/) override {
    if (!armed_) return false;
    blocks_ = true;
    const absl::Time deadline = In(20);
    while (armed_ && MonotonicNow() < deadline) absl::SleepFor(absl::Milliseconds(1));
    return true;
  }
  std::string Testify(absl::Time /*now*/, uint32_t /*query*/) override { return ""; }
  std::string Conclude(const std::vector<Said>& /*ranks*/, absl::Time /*asked*/,
                       absl::Time /*now*/) override {
    return "";
  }
  void Hear(const std::string& /*report*/, absl::Time /*now*/) override {}
  void Failed(const absl::Status& /*verdict*/) override {}

 private:
  std::atomic<bool> armed_{false};
  std::atomic<bool> blocks_{false};
};

// Sending fails before the last frames were read.
TEST(LeaveTest, WhatCameBeforeAResetCounts) {
  Network network;
  const Signal may_leave;
  Process leaver = StartLeaver(network, may_leave);
  network.Start();
  std::unique_ptr<Watch> watch = Join(1, network);
  Blocker blocker;
  watch->Attend(&blocker);
  watch->Goodbye(absl::InfinitePast());
  LetThemWork();
  blocker.Block();
  const absl::Time deadline = In(20);
  while (!blocker.blocks() && MonotonicNow() < deadline) absl::SleepFor(absl::Milliseconds(1));
  network.HoldEnds();
  may_leave.Give();
  EXPECT_EQ(leaver.Wait(In(20)).output, "");
  network.Forget();
  LetThemWork();
  blocker.Release();
  EXPECT_TRUE(watch->Goodbye(In(20)));
  EXPECT_TRUE(watch->verdict().ok()) << watch->verdict();
  watch->Attend(nullptr);
}

}  // namespace
}  // namespace railhead::bootstrap
