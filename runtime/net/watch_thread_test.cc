// SPDX-License-Identifier: Apache-2.0
#include "runtime/net/watch_thread.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/now.h"
#include "runtime/net/event.h"

namespace railhead::net {
namespace {

size_t Threads() {
  using Entries = std::filesystem::directory_iterator;
  return static_cast<size_t>(std::distance(Entries("/proc/self/task"), Entries()));
}

// A client whose turns are given.
class Client final : public WatchThread::Client {
 public:
  explicit Client(std::function<std::optional<absl::Time>(int number)> turn)
      : turn_(std::move(turn)), thread_(*WatchThread::Get()) {}
  ~Client() override { End(); }

  void Wake() { thread_->Wake(*this); }
  void End() {
    ending_ = true;
    Wake();
    thread_->AwaitEnd(*this);
  }
  int turns() const { return turns_; }
  // Whether it has as many turns within 20 s.
  bool Gets(int turns) const {
    const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
    while (turns_ < turns && MonotonicNow() < deadline) absl::SleepFor(absl::Milliseconds(1));
    return turns_ >= turns;
  }
  const std::shared_ptr<WatchThread>& thread() const { return thread_; }

 private:
  std::optional<absl::Time> Turn() override {
    if (ending_) return std::nullopt;
    return turn_(++turns_);
  }

  const std::function<std::optional<absl::Time>(int number)> turn_;
  const std::shared_ptr<WatchThread> thread_;
  std::atomic<bool> ending_{false};
  std::atomic<int> turns_{0};
};

std::optional<absl::Time> Never(int /*number*/) { return absl::InfiniteFuture(); }

TEST(WatchThreadTest, ThereIsOneWhileThereAreUsers) {
  const size_t before = Threads();
  for (int time = 0; time < 3; ++time) {
    std::optional<Client> first(Never);
    Client second(Never);
    EXPECT_EQ(first->thread(), second.thread());
    first->Wake();
    EXPECT_TRUE(first->Gets(1));
    first.reset();
    second.Wake();
    EXPECT_TRUE(second.Gets(1));
  }
  // The system may show one for a moment after its end.
  const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
  while (Threads() > before && MonotonicNow() < deadline) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(Threads(), before);
}

TEST(WatchThreadTest, AClientHasATurnWhenItIsWokenAndWhenItsTimeComes) {
  Client idle(Never);
  Client busy([](int number) {
    return number < 5 ? MonotonicNow() + absl::Milliseconds(10) : absl::InfiniteFuture();
  });
  idle.Wake();
  busy.Wake();
  EXPECT_TRUE(busy.Gets(5));
  EXPECT_EQ(idle.turns(), 1);
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(busy.turns(), 5);
}

// Otherwise a request that comes during a turn would wait for the next.
TEST(WatchThreadTest, AClientThatIsWokenInATurnHasAnother) {
  std::atomic<Client*> self = nullptr;
  Client client([&self](int number) -> std::optional<absl::Time> {
    if (number == 1) self.load()->Wake();
    return absl::InfiniteFuture();
  });
  self = &client;
  client.Wake();
  EXPECT_TRUE(client.Gets(2));
}

TEST(WatchThreadTest, AClientHasATurnWhenItsConnectionStirs) {
  const net::Event stirs = *net::Event::Open();
  Client other(Never);
  Client client([&stirs](int /*number*/) {
    stirs.Clear();
    return absl::InfiniteFuture();
  });
  client.Wake();
  EXPECT_TRUE(client.Gets(1));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = static_cast<WatchThread::Client*>(&client);
  ASSERT_EQ(::epoll_ctl(client.thread()->epoll(), EPOLL_CTL_ADD, stirs.fd(), &event), 0);
  for (int turns = 2; turns < 5; ++turns) {
    stirs.Signal();
    EXPECT_TRUE(client.Gets(turns));
  }
  // A descriptor that stirs after its client's end does not disturb other clients.
  client.End();
  stirs.Signal();
  other.Wake();
  EXPECT_TRUE(other.Gets(1));
  ::epoll_ctl(client.thread()->epoll(), EPOLL_CTL_DEL, stirs.fd(), nullptr);
}

TEST(WatchThreadTest, AForkedChildHasItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a process that starts threads after such a fork";
#endif
  Client client(Never);
  client.Wake();
  EXPECT_TRUE(client.Gets(1));
  const pid_t child = ::fork();
  if (child == 0) {
    Client its(Never);
    its.Wake();
    _exit(its.Gets(1) && its.thread() != client.thread() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(WatchThreadTest, ManyComeAndGo) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) {
        Client client(Never);
        client.Wake();
        EXPECT_TRUE(client.Gets(1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace railhead::net
