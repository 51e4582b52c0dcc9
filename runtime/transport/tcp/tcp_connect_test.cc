// SPDX-License-Identifier: Apache-2.0
//
// Connections over TCP: strangers are turned away, silent peers named, lost connections
// replaced, and many peers dial each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/now.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"
#include "runtime/testing/acceptors.h"
#include "runtime/testing/ranks.h"
#include "runtime/testing/sleeper.h"
#include "runtime/testing/tcp_pair.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/connect/reconnector.h"
#include "runtime/transport/link.h"
#include "runtime/transport/tcp/tcp.h"
#include "runtime/transport/tcp/tcp_links_for_test.h"

namespace railhead::transport {
namespace {

using Pair = railhead::testing::TcpPair;
using railhead::testing::DialStranger;
using railhead::testing::Sleeper;
using ::testing::HasSubstr;

TEST(TcpTest, StrangersAtTheListeningSideAreTurnedAway) {
  // Both sides listen; one of the two is the one that waits. Strangers call at both.
  const std::shared_ptr<Acceptor> a = AHall();
  const std::shared_ptr<Acceptor> b = AHall();
  const net::Fd silent_a = DialStranger(a->own().port);
  const net::Fd silent_b = DialStranger(b->own().port);
  const net::Fd babbling_a = DialStranger(a->own().port);
  const net::Fd babbling_b = DialStranger(b->own().port);
  for (const net::Fd* fd : {&babbling_a, &babbling_b}) {
    ASSERT_TRUE(net::SendAll(fd->get(), std::string(1000, 'x'), In(20)).ok());
  }
  const Pair pair = railhead::testing::ConnectedTcp(a, b);
  ASSERT_TRUE(*pair.a->TrySend({1, 2}, Bytes("through")));
  ASSERT_EQ(pair.a->Push(), absl::OkStatus());
  bool arrived = false;
  const absl::Time deadline = In(20);
  while (!arrived && MonotonicNow() < deadline) {
    ASSERT_TRUE(pair.b
                    ->Poll([&](const FrameHeader&, absl::Span<const std::byte> payload) {
                      arrived = payload == Bytes("through");
                      return true;
                    })
                    .moved.ok());
  }
  EXPECT_TRUE(arrived);
}

TEST(TcpTest, APeerThatDoesNotAnswerIsNamed) {
  std::shared_ptr<Acceptor> own;
  const std::shared_ptr<Acceptor> peer = AHall();
  // One of the two dials.
  do {
    own = AHall();
  } while (own->own().token > peer->own().token);
  const auto link = *OpenTcpLink(own, peer->Address(), "rank 1 (pod x)");
  absl::Status error;
  // It listens, but nobody looks at who comes.
  absl::Time now = MonotonicNow();
  for (const absl::Time deadline = In(20); error.ok() && MonotonicNow() < deadline;) {
    error = link->Reconnect(now).status();
    now += absl::Milliseconds(1);
  }
  EXPECT_EQ(error.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(error.message()), HasSubstr("rank 1 (pod x)"));
}

// Who has the answer says so, or the other side does not count itself as connected: it would be
// gone when the next attempt comes.
TEST(TcpTest, AnAnswerThatIsNotConfirmedIsNoConnection) {
  const std::shared_ptr<Acceptor> caller = AHall();
  std::shared_ptr<Acceptor> waits;
  do {
    waits = AHall();
  } while (waits->own().token < caller->own().token);
  const auto link = *OpenTcpLink(waits, caller->Address(), "rank 1");
  net::Fd dialed = DialStranger(waits->own().port);
  RailHandshake dialer =
      RailHandshake::OfDialer(caller->key(), *caller->NewHello(waits->own().token));
  ASSERT_TRUE(net::SendAll(dialed.get(), dialer.Begin(), In(20)).ok());
  std::string answer;
  for (const absl::Time deadline = In(20);
       answer.size() < dialer.expected() && MonotonicNow() < deadline;) {
    EXPECT_FALSE(link->Reconnect(MonotonicNow()).value());
    ASSERT_TRUE(net::ReceiveSome(dialed.get(), 4096, &answer).ok());
  }
  EXPECT_TRUE(dialer.Receive(answer).has_value());
  dialed.Reset();
  absl::Status error;
  for (const absl::Time deadline = In(20); error.ok() && MonotonicNow() < deadline;) {
    error = link->Reconnect(MonotonicNow()).status();
  }
  EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(link->connected());
}

// A machine may be so busy that the caller reads the answer late. Who then took the connection for
// good while the other side had given it up would not call again.
TEST(TcpTest, WhoReadsTheAnswerLateIsConnectedOnBothSidesOrOnNone) {
  for (const absl::Duration late : {absl::Seconds(2), absl::Seconds(4), absl::Seconds(30)}) {
    const std::shared_ptr<Acceptor> calls = AHall();
    std::shared_ptr<Acceptor> waits;
    do {
      waits = AHall();
    } while (waits->own().token < calls->own().token);
    const auto caller = *Reconnector::Open(calls, waits->Address(), "rank 1");
    const auto answers = *Reconnector::Open(waits, calls->Address(), "rank 0");
    absl::Time now = MonotonicNow();
    for (const absl::Time deadline = In(20);
         !waits->Has(calls->own().token) && MonotonicNow() < deadline;) {
      ASSERT_FALSE(caller->Advance(now)->valid());
      ASSERT_TRUE(waits->Admit(now).ok());
    }
    ASSERT_FALSE(answers->Advance(now)->valid());
    now += late;
    // Who waits looks first.
    const absl::StatusOr<Line> given_up = answers->Advance(now);
    const absl::StatusOr<Line> line = caller->Advance(now);
    const bool connected = line.ok() && line->valid();
    EXPECT_EQ(given_up.ok(), connected) << late;
    EXPECT_EQ(connected, late < absl::Seconds(30)) << line.status();
    bool both = !connected;
    for (const absl::Time deadline = In(20); !both && MonotonicNow() < deadline;) {
      const absl::StatusOr<Line> other = answers->Advance(now);
      ASSERT_TRUE(other.ok()) << other.status();
      both = other->valid();
    }
    EXPECT_TRUE(both) << late;
  }
}

// Ranks that lost the same switch do not all dial in the same moment, again and again.
TEST(TcpTest, AttemptsOfDifferentRanksDrift) {
  std::set<int64_t> pauses;
  for (const char* who : {"a", "b", "c"}) {
    for (uint64_t attempt = 0; attempt < 100; ++attempt) {
      const absl::Duration pause = PauseBeforeAttempt(who, attempt);
      EXPECT_EQ(pause, PauseBeforeAttempt(who, attempt));
      EXPECT_GE(pause, absl::Milliseconds(50));
      EXPECT_LE(pause, absl::Milliseconds(150));
      pauses.insert(absl::ToInt64Milliseconds(pause));
    }
  }
  EXPECT_GT(pauses.size(), 80U) << "of a hundred";
}

// Whichever side loses the connection first, both come to a new one.
TEST_P(FramesTest, ALostLinkReconnects) {
  for (const bool first : {true, false}) {
    const Pair pair = Connected(GetParam());
    Link& loses = first ? *pair.a : *pair.b;
    Link& learns = first ? *pair.b : *pair.a;
    for (int round = 0; round < 5; ++round) {
      ASSERT_TRUE(*pair.a->TrySend({1, 2}, Bytes("never read")));
      ASSERT_EQ(pair.a->Push(), absl::OkStatus());
      loses.Drop("cut");
      EXPECT_FALSE(loses.TrySend({0, 0}, Bytes("x")).ok());
      EXPECT_TRUE(loses.Flushed());
      EXPECT_EQ(ErrorOf(learns).code(), absl::StatusCode::kUnavailable);
      bool back[2] = {false, false};
      const absl::Time deadline = In(20);
      while (!back[0] || !back[1]) {
        ASSERT_LT(MonotonicNow(), deadline);
        for (const int side : {0, 1}) {
          // The other side may not have answered in time, on a busy machine.
          const absl::StatusOr<bool> returned =
              (side == 0 ? loses : learns).Reconnect(MonotonicNow());
          ASSERT_TRUE(returned.ok() || absl::IsUnavailable(returned.status()) ||
                      absl::IsDeadlineExceeded(returned.status()))
              << returned.status();
          back[side] = returned.value_or(false);
        }
      }
      for (Link* link : {&loses, &learns}) {
        EXPECT_EQ(Unacknowledged(*link), 0U);
        ASSERT_TRUE(*link->TrySend({3, 4, true, true}, Bytes("through")));
        ASSERT_EQ(link->Push(), absl::OkStatus());
      }
      PumpUntil(loses, learns,
                [&] { return Unacknowledged(loses) == 0 && Unacknowledged(learns) == 0; });
    }
  }
}

// A child keeps the socket open, and with it what the kernel watches of it, if it was made past the
// handlers that close the library's descriptors in forked ones.
TEST(TcpTest, ALostConnectionThatAChildHoldsWakesNobody) {
  const Pair pair = Connected();
  ASSERT_TRUE(*pair.a->TrySend({0, 0}, Bytes("never read")));
  const pid_t child = ::_Fork();
  if (child == 0) {
    while (true) ::pause();
  }
  ASSERT_GT(child, 0);
  // A link that has slept watches its socket.
  const Sleeper sleeper(*pair.b);
  ASSERT_TRUE(pair.b->Arm(Wake::kAll).ok());
  pair.b->Drop("the test says so");
  ASSERT_TRUE(pair.b->Arm(Wake::kAll).ok());
  // The peer's end of the connection makes it readable for as long as anybody has it open.
  pair.a->Drop("and so does the other side");
  EXPECT_FALSE(sleeper.Wakes(50));
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(TcpTest, WithoutDescriptorsACallerWakesNobodyAgainAndAgain) {
  const std::shared_ptr<Acceptor> acceptor = AHall();
  // Sockets that exist already, since there will be no descriptors for others.
  const net::Fd first(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const net::Fd second(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage place{};
  const socklen_t size = acceptor->own().ip.ToSockaddr(acceptor->own().port, &place);
  const auto call = [&](const net::Fd& socket) {
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&place), size), 0);
    ASSERT_EQ(::send(socket.get(), "?", 1, MSG_NOSIGNAL), 1);
  };
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  call(first);
  const auto cpu = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return absl::DurationFromTimeval(used.ru_utime) + absl::DurationFromTimeval(used.ru_stime);
  };
  const absl::Duration before = cpu();
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_LT(cpu() - before, absl::Milliseconds(250)) << "the thread that accepts does not sleep";
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  // It is let in when there is room again.
  call(second);
  const absl::Time deadline = In(20);
  uint64_t strangers = 0;
  while (strangers < 2 && MonotonicNow() < deadline) strangers += acceptor->TakeStrangers();
  EXPECT_EQ(strangers, 2U);
}

TEST(TcpTest, WhereThePeerIsMayBecomeKnownLater) {
  const std::shared_ptr<Acceptor> own = AHall();
  const std::shared_ptr<Acceptor> theirs = AHall();
  std::optional<std::string> known;
  const std::unique_ptr<Link> a = *OpenTcpLink(own, Locator([&known] { return known; }), "rank 1");
  const std::unique_ptr<Link> b = *OpenTcpLink(theirs, own->Address(), "rank 0");
  const auto work = [&](int rounds) {
    for (int i = 0; i < rounds && !(a->connected() && b->connected()); ++i) {
      const absl::Status worked = a->Reconnect(MonotonicNow()).status();
      EXPECT_TRUE(worked.ok() || known.has_value()) << worked;
      b->Reconnect(MonotonicNow()).IgnoreError();  // nobody may have answered in time
      absl::SleepFor(absl::Milliseconds(1));
    }
  };
  work(20);
  EXPECT_FALSE(a->connected());
  known = theirs->Address();
  work(10000);
  EXPECT_TRUE(a->connected() && b->connected());
  known = "nonsense";
  const std::unique_ptr<Link> c =
      *OpenTcpLink(own, Locator([] { return std::optional<std::string>(); }), "rank 2");
  EXPECT_FALSE(*c->Reconnect(MonotonicNow()));
  EXPECT_EQ(OpenTcpLink(own, Locator([&known] { return known; }), "rank 3").status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Everybody dials everybody: not all at once, and all come to it.
TEST(TcpTest, FewAreDialedAtOnceAndAllInTheEnd) {
  constexpr size_t kPeers = 60;
  const std::shared_ptr<Acceptor> own = railhead::testing::OpenAcceptor(kPeers);
  std::vector<std::shared_ptr<Acceptor>> acceptors;
  std::vector<std::unique_ptr<Reconnector>> here;
  std::vector<std::unique_ptr<Reconnector>> there;
  for (size_t i = 0; i < kPeers; ++i) {
    acceptors.push_back(AHall());
    here.push_back(*Reconnector::Open(own, acceptors.back()->Address(), "peer"));
    there.push_back(*Reconnector::Open(acceptors.back(), own->Address(), "self"));
  }
  // None of the peers looks. Tokens decide who dials whom.
  size_t dials = 0;
  for (const auto& reconnector : here) {
    EXPECT_TRUE(reconnector->Advance(MonotonicNow()).ok());
    dials += reconnector->dials() ? 1 : 0;
  }
  EXPECT_EQ(own->MayDial(), dials < 16);
  std::vector<net::Fd> lines(kPeers);
  std::vector<net::Fd> others(kPeers);
  const auto all = [&] {
    const auto valid = [](const net::Fd& fd) { return fd.valid(); };
    return std::all_of(lines.begin(), lines.end(), valid) &&
           std::all_of(others.begin(), others.end(), valid);
  };
  const absl::Time deadline = In(60);
  while (!all() && MonotonicNow() < deadline) {
    for (size_t i = 0; i < kPeers; ++i) {
      if (!lines[i].valid()) {
        absl::StatusOr<Line> line = here[i]->Advance(MonotonicNow());
        if (line.ok()) lines[i] = std::move(line->fd);
      }
      if (!others[i].valid()) {
        absl::StatusOr<Line> line = there[i]->Advance(MonotonicNow());
        if (line.ok()) others[i] = std::move(line->fd);
      }
    }
  }
  EXPECT_TRUE(all());
  EXPECT_TRUE(own->MayDial());
}

// Links that begin without a connection, at acceptors that several peers share.
TEST(TcpTest, LinksConnectWhenBothSidesWorkAtIt) {
  constexpr size_t kRanks = 4;
  std::vector<std::shared_ptr<Acceptor>> acceptors;
  for (size_t rank = 0; rank < kRanks; ++rank) acceptors.push_back(AHall());
  std::vector<std::unique_ptr<Link>> links;  // first of those who come first, then the others
  for (const bool first : {true, false}) {
    for (size_t a = 0; a < kRanks; ++a) {
      for (size_t b = 0; b < kRanks; ++b) {
        const bool dials = acceptors[a]->own().token < acceptors[b]->own().token;
        if (a == b || dials != first) continue;
        links.push_back(
            *OpenTcpLink(acceptors[a], acceptors[b]->Address(), absl::StrCat("rank ", b)));
        EXPECT_FALSE(links.back()->connected());
        EXPECT_EQ(Drop(*links.back()).status().code(), absl::StatusCode::kUnavailable);
      }
    }
    if (!first) break;
    // Who is not expected yet stands in the acceptor, and can be asked for.
    const absl::Time deadline = In(20);
    size_t standing = 0;
    while (standing < links.size() && MonotonicNow() < deadline) {
      standing = 0;
      for (const std::unique_ptr<Link>& link : links) {
        link->Reconnect(MonotonicNow()).IgnoreError();
        EXPECT_FALSE(link->connected());
      }
      for (const std::shared_ptr<Acceptor>& acceptor : acceptors) {
        acceptor->Admit(MonotonicNow()).IgnoreError();
        standing += acceptor->Callers().size();
      }
    }
    EXPECT_EQ(standing, links.size());
  }
  const absl::Time deadline = In(20);
  size_t connected = 0;
  while (connected < links.size() && MonotonicNow() < deadline) {
    connected = 0;
    for (const std::unique_ptr<Link>& link : links) {
      if (!link->connected()) link->Reconnect(MonotonicNow()).IgnoreError();
      connected += link->connected() ? 1 : 0;
    }
  }
  EXPECT_EQ(connected, kRanks * (kRanks - 1));
}

// A side that has not noticed is told by the new connection.
TEST(TcpTest, WhoConnectsAnewReplacesTheOldConnection) {
  const std::shared_ptr<Acceptor> dials = AHall();
  std::shared_ptr<Acceptor> waits;
  do {
    waits = AHall();
  } while (waits->own().token < dials->own().token);
  const std::unique_ptr<Reconnector> reconnector =
      *Reconnector::Open(dials, waits->Address(), "rank 0");
  const std::unique_ptr<Link> link = *OpenTcpLink(waits, dials->Address(), "rank 1");
  absl::Status told;
  const auto dial = [&] {
    net::Fd dialed;
    const absl::Time deadline = In(20);
    // Both move at each look.
    for (bool connected = false; !connected || !dialed.valid();) {
      if (!dialed.valid()) dialed = std::move(reconnector->Advance(MonotonicNow())->fd);
      if (link->connected() && told.ok()) told = Drop(*link).status();
      connected = *link->Reconnect(MonotonicNow());
      if (MonotonicNow() >= deadline) return dialed;
    }
    return dialed;
  };
  const net::Fd first = dial();
  ASSERT_TRUE(told.ok()) << told;
  const net::Fd second = dial();
  EXPECT_THAT(std::string(told.message()), HasSubstr("reconnects"));
  ASSERT_TRUE(*link->TrySend({0, 0}, Bytes("x")));
  ASSERT_EQ(link->Push(), absl::OkStatus());
  EXPECT_TRUE(net::WaitReadable(second.get(), In(20)).ok());
}

TEST(TcpTest, StrangersAreCountedAlsoLater) {
  const std::shared_ptr<Acceptor> acceptor = AHall();
  std::shared_ptr<Acceptor> peer;
  do {
    peer = AHall();
  } while (peer->own().token > acceptor->own().token);
  const std::unique_ptr<Reconnector> reconnector =
      *Reconnector::Open(acceptor, peer->Address(), "rank 1");
  Reconnector& waits = *reconnector;
  const net::Fd stranger = DialStranger(acceptor->own().port);
  ASSERT_TRUE(net::SendAll(stranger.get(), "GET / HTTP/1.1\r\n", In(20)).ok());
  const absl::Time deadline = In(20);
  while (waits.strangers() == 0 && MonotonicNow() < deadline) {
    EXPECT_FALSE(waits.Advance(MonotonicNow())->valid());
  }
  EXPECT_EQ(waits.strangers(), 1U);
  EXPECT_TRUE(railhead::testing::IsClosedByPeer(stranger));
}

TEST(TcpTest, BadAddressesAreRefused) {
  const std::shared_ptr<Acceptor> own = AHall();
  const std::string good = AHall()->Address();
  for (const std::string& address : {std::string(), good.substr(0, good.size() - 1), good + "x",
                                     std::string(26, '\xff'), own->Address()}) {
    EXPECT_FALSE(OpenTcpLink(own, address, "rank 1").ok());
  }
}

}  // namespace
}  // namespace railhead::transport
