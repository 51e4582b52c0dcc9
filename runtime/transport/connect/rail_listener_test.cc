// SPDX-License-Identifier: Apache-2.0
//
// Communicators of one process that share a listening socket: each gets its own connections.
#include "runtime/transport/connect/rail_listener.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/net/socket.h"
#include "runtime/testing/ranks.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/connect/reconnector.h"
#include "runtime/transport/tcp/tcp.h"

namespace railhead::transport {
namespace {

using railhead::testing::DialStranger;

const net::IpAddress& Address() {
  static const net::IpAddress loopback = *net::IpAddress::Parse("127.0.0.1");
  return loopback;
}

absl::Time InTwentySeconds() { return MonotonicNow() + absl::Seconds(20); }

std::shared_ptr<RailListener> Listener() { return *RailListener::Open(Address()); }

std::shared_ptr<Acceptor> At(const std::shared_ptr<RailListener>& listener, uint32_t rank,
                             const std::string& key = "the job's key",
                             std::shared_ptr<WakeEvent> wake = nullptr) {
  return *Acceptor::Open(listener, 4, rank, {key, 1}, std::move(wake));
}

// A sleeper whom an event wakes.
class Sleeper {
 public:
  Sleeper() { EXPECT_TRUE(event_->WakeBy(epoll_.get(), this).ok()); }
  ~Sleeper() { event_->WakeBy(-1, nullptr).IgnoreError(); }
  const std::shared_ptr<WakeEvent>& event() const { return event_; }
  bool IsWoken(absl::Time deadline = absl::InfinitePast()) const {
    epoll_event event{};
    return ::epoll_wait(epoll_.get(), &event, 1, net::PollTimeout(deadline)) == 1 &&
           event.data.ptr == this;
  }

 private:
  const net::Fd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
  const std::shared_ptr<WakeEvent> event_ = std::make_shared<WakeEvent>();
};

TEST(WakeEventTest, IsReadableFromSignalUntilClear) {
  const Sleeper one;
  const Sleeper other;
  EXPECT_FALSE(one.IsWoken());
  one.event()->Signal();
  one.event()->Signal();
  EXPECT_TRUE(one.IsWoken() && one.IsWoken());
  EXPECT_FALSE(other.IsWoken());
  one.event()->Clear();
  EXPECT_FALSE(one.IsWoken());
  std::thread thread([&] { other.event()->Signal(); });
  EXPECT_TRUE(other.IsWoken(InTwentySeconds()));
  thread.join();
}

TEST(WakeEventTest, ASignalWithoutASleeperIsKept) {
  WakeEvent event;
  event.Signal();
  const net::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  ASSERT_TRUE(event.WakeBy(epoll.get(), nullptr).ok());
  epoll_event woken{};
  EXPECT_EQ(::epoll_wait(epoll.get(), &woken, 1, 0), 1);
  ASSERT_TRUE(event.WakeBy(-1, nullptr).ok());
  EXPECT_EQ(::epoll_wait(epoll.get(), &woken, 1, 0), 0);
}

// Sends a whole Hello of `from` to `to`, and keeps the connection open.
net::Fd Call(Acceptor& from, const Acceptor& to) {
  net::Fd caller = DialStranger(to.own().port);
  EXPECT_TRUE(net::SendAll(caller.get(), *from.NewHello(to.own().token), InTwentySeconds()).ok());
  return caller;
}

// Admits at `acceptor` until `done`.
template <class Done>
bool AdmitUntil(Acceptor& acceptor, Done done) {
  const absl::Time deadline = InTwentySeconds();
  while (!done()) {
    if (MonotonicNow() >= deadline) return false;
    EXPECT_TRUE(acceptor.Admit(MonotonicNow()).ok());
  }
  return true;
}

TEST(RailListenerTest, AProcessHasOneForEachAddress) {
  std::shared_ptr<RailListener> first = *RailListener::Shared(Address());
  EXPECT_EQ(*RailListener::Shared(Address()), first);
  const auto other = RailListener::Shared(*net::IpAddress::Parse("127.0.0.2"));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(*other, first);
  const std::weak_ptr<RailListener> known = first;
  first.reset();
  EXPECT_TRUE(known.expired());  // its last user closes it
  EXPECT_TRUE(RailListener::Shared(Address()).ok());
}

TEST(RailListenerTest, AConnectionReachesTheOneThatItNames) {
  const std::shared_ptr<RailListener> listener = Listener();
  const Sleeper sleeper;
  const Sleeper other_sleeper;
  const auto named = At(listener, 1, "one communicator's key", sleeper.event());
  const auto other = At(listener, 1, "another one's", other_sleeper.event());
  EXPECT_EQ(named->own().port, other->own().port);
  const auto peer = At(Listener(), 2, "one communicator's key");
  EXPECT_FALSE(sleeper.IsWoken());
  const net::Fd caller = Call(*peer, *named);
  // Nobody needs to ask for it.
  EXPECT_TRUE(sleeper.IsWoken(InTwentySeconds()));
  sleeper.event()->Clear();
  EXPECT_FALSE(sleeper.IsWoken() || other_sleeper.IsWoken());
  EXPECT_FALSE(other->Has(peer->own().token));
  EXPECT_TRUE(other->Callers().empty());
  EXPECT_EQ(named->Callers(), std::vector<uint32_t>{2});
  EXPECT_FALSE(other->Take(peer->own().token).fd.valid());
  EXPECT_TRUE(named->Take(peer->own().token).fd.valid());
  EXPECT_FALSE(named->Has(peer->own().token));
  EXPECT_EQ(named->TakeStrangers() + other->TakeStrangers(), 0U);
}

TEST(RailListenerTest, TheKeyOfTheNamedOneCounts) {
  const std::shared_ptr<RailListener> listener = Listener();
  const auto named = At(listener, 1, "one communicator's key");
  const auto other = At(listener, 1, "another one's");
  const auto peer = At(Listener(), 2, "another one's");
  const net::Fd caller = Call(*peer, *named);
  uint64_t strangers = 0;
  EXPECT_TRUE(AdmitUntil(*other, [&] { return (strangers += named->TakeStrangers()) > 0; }));
  EXPECT_EQ(strangers, 1U);
  EXPECT_EQ(other->TakeStrangers(), 0U);
  EXPECT_TRUE(named->Callers().empty() && other->Callers().empty());
}

TEST(RailListenerTest, ConnectionsForAnEndedCommunicatorAreNoStrangers) {
  const std::shared_ptr<RailListener> listener = Listener();
  const auto stays = At(listener, 1);
  auto ends = At(listener, 1);
  const auto peer = At(Listener(), 2);
  const net::Fd before = Call(*peer, *ends);
  ASSERT_TRUE(AdmitUntil(*stays, [&] { return ends->Has(peer->own().token); }));
  const std::string hello = *peer->NewHello(ends->own().token);
  ends.reset();
  // Its connections are closed, those that waited and those that come.
  EXPECT_TRUE(net::WaitReadable(before.get(), InTwentySeconds()).ok());
  const net::Fd late = DialStranger(stays->own().port);
  ASSERT_TRUE(net::SendAll(late.get(), hello, InTwentySeconds()).ok());
  std::string nothing;
  EXPECT_TRUE(AdmitUntil(*stays, [&] {
    const absl::StatusOr<bool> open = net::ReceiveSome(late.get(), 1, &nothing);
    return !open.ok() || !*open;
  }));
  EXPECT_EQ(stays->TakeStrangers(), 0U);
  // One that names nobody is counted.
  const auto elsewhere = At(Listener(), 1);
  const net::Fd stranger = DialStranger(stays->own().port);
  ASSERT_TRUE(
      net::SendAll(stranger.get(), *peer->NewHello(elsewhere->own().token), InTwentySeconds())
          .ok());
  EXPECT_TRUE(AdmitUntil(*stays, [&] { return stays->TakeStrangers() == 1; }));
}

TEST(RailListenerTest, SilentStrangersDoNotDisplaceARank) {
  const std::shared_ptr<RailListener> listener = Listener();
  const auto acceptor = At(listener, 1);
  const auto peer = At(Listener(), 2);
  const net::Fd caller = Call(*peer, *acceptor);
  ASSERT_TRUE(AdmitUntil(*acceptor, [&] { return acceptor->Has(peer->own().token); }));
  std::vector<net::Fd> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(DialStranger(acceptor->own().port));
    ASSERT_TRUE(acceptor->Admit(MonotonicNow()).ok());
  }
  EXPECT_TRUE(acceptor->Has(peer->own().token));
  EXPECT_GE(acceptor->TakeStrangers(), 70U);
}

// Communicators in threads of their own: each pair connects, loses its connection and connects
// again, while the others do.
TEST(RailListenerTest, CommunicatorsOfSeveralThreadsShareIt) {
  constexpr int kPairs = 8;
  constexpr int kTimes = 5;
  const std::shared_ptr<RailListener> here = Listener();
  const std::shared_ptr<RailListener> there = Listener();
  std::atomic<int> connected{0};
  std::vector<std::thread> threads;
  for (int pair = 0; pair < kPairs; ++pair) {
    threads.emplace_back([&, pair] {
      const std::string key = absl::StrCat("key of ", pair);
      const auto a = At(here, 0, key);
      const auto b = At(there, 1, key);
      const auto link_a = *OpenTcpLink(a, b->Address(), "rank 1");
      const auto link_b = *OpenTcpLink(b, a->Address(), "rank 0");
      const absl::Time deadline = InTwentySeconds();
      for (int time = 0; time < kTimes; ++time) {
        while (!(link_a->connected() && link_b->connected()) && MonotonicNow() < deadline) {
          for (Link* link : {link_a.get(), link_b.get()}) {
            const auto polled = link->Poll([](auto&&...) { return true; });
            if (!polled.moved.ok()) link->Reconnect(MonotonicNow()).IgnoreError();
          }
        }
        if (link_a->connected() && link_b->connected()) ++connected;
        link_a->Drop("the test says so");
        link_b->Drop("the test says so");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(connected, kPairs * kTimes);
}

}  // namespace
}  // namespace railhead::transport
