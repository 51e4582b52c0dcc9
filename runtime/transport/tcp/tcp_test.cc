// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/net/socket.h"
#include "runtime/testing/acceptors.h"
#include "runtime/testing/ranks.h"
#include "runtime/testing/relay.h"
#include "runtime/testing/sleeper.h"
#include "runtime/testing/tcp_pair.h"
#include "runtime/transport/connect/reconnector.h"
#include "runtime/transport/tcp/ack_timeout.h"
#include "runtime/transport/tcp/frame_seal.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace railhead::transport {
namespace {

using railhead::testing::DialStranger;
using railhead::testing::Sleeper;
using ::testing::HasSubstr;

absl::Time In(double seconds) { return MonotonicNow() + absl::Seconds(seconds); }

std::shared_ptr<Acceptor> AHall() { return railhead::testing::OpenAcceptor(); }

absl::Span<const std::byte> Bytes(absl::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

using Pair = railhead::testing::TcpPair;

Pair Connected(FrameProtection protection = FrameProtection::kNone) {
  return railhead::testing::ConnectedTcp(protection);
}

// What this build and CPU can do.
std::vector<FrameProtection> Protections() {
  std::vector<FrameProtection> all = {FrameProtection::kSigned, FrameProtection::kChaCha20Poly1305};
  if (HasAes256Gcm()) all.push_back(FrameProtection::kAes256Gcm);
  return all;
}

std::string NameOf(FrameProtection protection) {
  constexpr std::array<const char*, 4> kNames = {"Plain", "Signed", "ChaCha20", "Aes"};
  return kNames[static_cast<size_t>(protection)];
}

class FramesTest : public ::testing::TestWithParam<FrameProtection> {};
const auto name_of_frames = [](const auto& info) { return NameOf(info.param); };
INSTANTIATE_TEST_SUITE_P(Plain, FramesTest, ::testing::Values(FrameProtection::kNone),
                         name_of_frames);
INSTANTIATE_TEST_SUITE_P(Frames, FramesTest, ::testing::ValuesIn(Protections()), name_of_frames);

// A link whose other side is a bare socket of the test.
struct HalfPair {
  std::unique_ptr<Link> link;
  net::Fd raw;
};

HalfPair HalfConnected() {
  const std::shared_ptr<Acceptor> own = AHall();
  const std::shared_ptr<Acceptor> peer = AHall();
  const std::unique_ptr<Reconnector> reconnector =
      *Reconnector::Open(peer, own->Address(), "rank 0");
  HalfPair pair = {*OpenTcpLink(own, peer->Address(), "rank 1"), net::Fd()};
  const absl::Time deadline = In(20);
  while ((!pair.link->connected() || !pair.raw.valid()) && MonotonicNow() < deadline) {
    pair.link->Reconnect(MonotonicNow()).IgnoreError();
    if (!pair.raw.valid()) pair.raw = std::move(reconnector->Advance(MonotonicNow())->fd);
  }
  EXPECT_TRUE(pair.link->connected());
  return pair;
}

absl::StatusOr<bool> Drop(Link& link) {
  return link.Poll([](const FrameHeader&, absl::Span<const std::byte>) { return true; }).moved;
}

uint64_t Unacknowledged(Link& link) {
  return link.Poll([](const FrameHeader&, absl::Span<const std::byte>) { return false; })
      .unacknowledged;
}

// Polls until the link reports an error.
absl::Status ErrorOf(Link& link) {
  const absl::Time deadline = In(20);
  while (MonotonicNow() < deadline) {
    if (const absl::StatusOr<bool> moved = Drop(link); !moved.ok()) return moved.status();
  }
  return absl::OkStatus();
}

TEST_P(FramesTest, FramesArriveWholeInOrderBothWays) {
  const Pair pair = Connected(GetParam());
  std::mt19937 random(5);
  struct Sent {
    FrameHeader header;
    std::string payload;
  };
  std::deque<Sent> to_b;
  std::deque<Sent> to_a;
  uint64_t bytes_to_b = 0;
  int frames = 0;
  int refusals = 0;
  const auto receive = [&](Link& link, std::deque<Sent>& expected) {
    const absl::StatusOr<bool> polled =
        link.Poll([&](const FrameHeader& header, absl::Span<const std::byte> payload) {
              if (random() % 4 == 0) {
                ++refusals;
                return false;  // must come again, the same
              }
              EXPECT_FALSE(expected.empty());
              EXPECT_EQ(header.transfer, expected.front().header.transfer);
              EXPECT_EQ(header.offset, expected.front().header.offset);
              EXPECT_TRUE(payload == Bytes(expected.front().payload));
              expected.pop_front();
              return true;
            })
            .moved;
    ASSERT_TRUE(polled.ok()) << polled.status();
  };
  const absl::Time deadline = In(60);
  while ((frames < 400 || !to_a.empty() || !to_b.empty()) && MonotonicNow() < deadline) {
    for (const bool forward : {true, false}) {
      if (frames >= 400) break;
      Link& link = forward ? *pair.a : *pair.b;
      const size_t size =
          random() % 8 == 0 ? link.max_payload() : random() % (random() % 2 == 0 ? 64 : 100000);
      Sent sent{{random(), random()}, std::string(size, static_cast<char>(random()))};
      const absl::StatusOr<bool> taken = link.TrySend(sent.header, Bytes(sent.payload));
      ASSERT_TRUE(taken.ok()) << taken.status();
      if (!*taken) continue;
      ++frames;
      if (forward) bytes_to_b += size;
      (forward ? to_b : to_a).push_back(std::move(sent));
    }
    receive(*pair.b, to_b);
    receive(*pair.a, to_a);
  }
  EXPECT_TRUE(to_a.empty() && to_b.empty());
  EXPECT_GT(refusals, 0);
  EXPECT_EQ(pair.a->stats().transmit_bytes, bytes_to_b);
  EXPECT_EQ(pair.b->stats().receive_bytes, bytes_to_b);
  EXPECT_TRUE(pair.a->Flushed() && pair.b->Flushed());
}

TEST_P(FramesTest, AFullWireRefusesAndThenTakesMore) {
  const Pair pair = Connected(GetParam());
  const std::string payload(pair.a->max_payload(), 'x');
  int taken = 0;
  while (*pair.a->TrySend({0, 0}, Bytes(payload))) ASSERT_LT(++taken, 1000);
  ASSERT_TRUE(pair.a->Arm(Wake::kAll).ok());
  EXPECT_FALSE(Sleeper(*pair.a).Wakes(0)) << "nothing to do while the wire is full";
  const absl::Time deadline = In(20);
  while (!*pair.a->TrySend({0, 0}, Bytes(payload))) {
    ASSERT_LT(MonotonicNow(), deadline);
    ASSERT_TRUE(Drop(*pair.b).ok());
    ASSERT_TRUE(Drop(*pair.a).ok());
  }
}

// Nobody else would give the kernel the rest of a frame.
TEST(TcpTest, AFrameThatTheKernelHasInPartIsNotFlushed) {
  const Pair pair = Connected();
  EXPECT_TRUE(pair.a->Flushed());
  const std::string payload(pair.a->max_payload(), 'x');
  uint64_t sent = 0;
  for (; pair.a->Flushed(); ++sent) {
    ASSERT_LT(sent, 1000U);
    ASSERT_TRUE(*pair.a->TrySend({}, Bytes(payload)));
  }
  const absl::Time deadline = In(20);
  while (!pair.a->Flushed()) {
    ASSERT_LT(MonotonicNow(), deadline);
    ASSERT_TRUE(Drop(*pair.b).ok());
    ASSERT_TRUE(Drop(*pair.a).ok());
  }
  // What it has now comes without this side.
  while (pair.b->stats().receive_bytes < sent * payload.size()) {
    ASSERT_LT(MonotonicNow(), deadline);
    ASSERT_TRUE(Drop(*pair.b).ok());
  }
}

// Memory that cannot be read would fail every other rail alike: it is no loss of this one.
TEST(TcpTest, WhatThisSideDidWrongIsNoLostRail) {
  constexpr size_t kSize = TcpWire::kMaxPayload;
  void* const nothing = ::mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(nothing, MAP_FAILED);
  const Pair pair = Connected();
  const absl::Status error =
      pair.a->TrySend({}, absl::MakeConstSpan(static_cast<const std::byte*>(nothing), kSize))
          .status();
  EXPECT_EQ(error.code(), absl::StatusCode::kInternal) << error;
  EXPECT_THAT(std::string(error.message()), HasSubstr("send: Bad address"));
  ASSERT_EQ(::munmap(nothing, kSize), 0);
}

TEST(TcpTest, TheDescriptorWakesForArrivals) {
  const Pair pair = Connected();
  ASSERT_TRUE(pair.b->Arm(Wake::kAll).ok());
  const Sleeper sleeper(*pair.b);
  EXPECT_FALSE(sleeper.Wakes(0));
  ASSERT_TRUE(*pair.a->TrySend({1, 2}, Bytes("hello")));
  EXPECT_TRUE(sleeper.Wakes(20000));
}

TEST(TcpTest, TooLongAFrameIsRefusedHere) {
  const Pair pair = Connected();
  const std::string payload(pair.a->max_payload() + 1, 'x');
  EXPECT_FALSE(pair.a->TrySend({0, 0}, Bytes(payload)).ok());
}

TEST_P(FramesTest, FramesBeforeTheEndAreDeliveredAndThenTheEndIsAnError) {
  Pair pair = Connected(GetParam());
  ASSERT_TRUE(*pair.a->TrySend({7, 0}, Bytes("last words")));
  pair.a.reset();
  int frames = 0;
  absl::Status error;
  const absl::Time deadline = In(20);
  while (error.ok() && MonotonicNow() < deadline) {
    error = pair.b
                ->Poll([&](const FrameHeader& header, absl::Span<const std::byte>) {
                  EXPECT_EQ(header.transfer, 7U);
                  ++frames;
                  return true;
                })
                .moved.status();
  }
  EXPECT_EQ(frames, 1);
  EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(error.message()), HasSubstr("closed the connection"));
}

TEST(TcpTest, NonsenseOnTheStreamIsAnError) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\nHost: railhead.example.org\r\n\r\n"),
        // A frame of 4 GiB.
        std::string("RLH5\xff\xff\xff\xff") + std::string(48, '\0')}) {
    const HalfPair pair = HalfConnected();
    ASSERT_TRUE(net::SendAll(pair.raw.get(), bytes, In(20)).ok());
    EXPECT_THAT(std::string(ErrorOf(*pair.link).message()), HasSubstr("not a frame"));
  }
}

TEST(TcpTest, AnEndWithinAFrameIsAnError) {
  HalfPair pair = HalfConnected();
  ASSERT_TRUE(net::SendAll(pair.raw.get(), std::string("RLH5\x04\0\0\0", 8), In(20)).ok());
  pair.raw.Reset();
  EXPECT_THAT(std::string(ErrorOf(*pair.link).message()), HasSubstr("within a frame"));
}

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

// ---- Loss and return ----

// Moves both links, until what is waited for has come.
template <class Done>
void PumpUntil(Link& a, Link& b, Done done) {
  const absl::Time deadline = In(20);
  while (!done()) {
    ASSERT_LT(MonotonicNow(), deadline);
    for (Link* link : {&a, &b}) {
      if (!Drop(*link).ok()) link->Reconnect(MonotonicNow()).IgnoreError();
    }
  }
}

TEST_P(FramesTest, WhatThePeerHasTakenIsAcknowledged) {
  const Pair pair = Connected(GetParam());
  for (const bool awaited : {true, false}) {
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(*pair.a->TrySend({0, 0, false, awaited}, Bytes("data")));
    }
    EXPECT_EQ(Unacknowledged(*pair.a), 3U);
    // What is refused is not acknowledged.
    int offered = 0;
    const absl::Time deadline = In(20);
    while (offered < 3 && MonotonicNow() < deadline) {
      ASSERT_TRUE(pair.b
                      ->Poll([&](const FrameHeader& header, absl::Span<const std::byte>) {
                        EXPECT_EQ(header.awaited, awaited);
                        return ++offered < 3;
                      })
                      .moved.ok());
    }
    ASSERT_TRUE(pair.b->Acknowledge().ok());
    PumpUntil(*pair.a, *pair.a, [&] { return Unacknowledged(*pair.a) == 1; });
    // The last one is taken now. Who sleeps long owes no acknowledgement.
    PumpUntil(*pair.b, *pair.b, [&] { return pair.b->stats().receive_bytes % 12 == 0; });
    if (!awaited) {
      ASSERT_TRUE(pair.b->Acknowledge().ok());
    }
    PumpUntil(*pair.a, *pair.b, [&] { return Unacknowledged(*pair.a) == 0; });
    EXPECT_TRUE(pair.b->Flushed());
  }
}

// Large frames fill the memory for input to its last byte, again and again.
TEST_P(FramesTest, WhoSleepsIsWokenByWhatIsUnderWay) {
  const Pair pair = Connected(GetParam());
  const std::string payload(pair.a->max_payload(), 'x');
  constexpr size_t kFrames = 1000;
  const absl::Time deadline = In(60);
  size_t taken = 0;
  for (size_t sent = 0; taken < kFrames;) {
    while (sent < kFrames && *pair.a->TrySend({}, Bytes(payload))) ++sent;
    ASSERT_TRUE(pair.b
                    ->Poll([&](const FrameHeader&, absl::Span<const std::byte>) {
                      ++taken;
                      return true;
                    })
                    .moved.ok());
    ASSERT_TRUE(pair.b->Arm(Wake::kFrames).ok());
    const Sleeper sleeper(*pair.b);
    while (taken < sent && !sleeper.Wakes(1)) {
      ASSERT_LT(MonotonicNow(), deadline) << taken << " of " << sent << " frames were taken";
      ASSERT_TRUE(Drop(*pair.a).ok());
    }
  }
}

// Nor does a frame that had no place keep those behind it from theirs.
TEST_P(FramesTest, LargeFramesGoStraightToTheirPlace) {
  const Pair pair = Connected(GetParam());
  const size_t size = pair.a->max_payload();
  constexpr uint64_t kFrames = 64;
  std::mt19937 random(3);
  std::string sent(kFrames * size, '\0');
  for (char& byte : sent) byte = static_cast<char>(random());
  std::string arrived(sent.size(), '\0');
  uint64_t taken = 0;
  uint64_t placed = 0;
  const auto place_of = [&](const FrameHeader& header) {
    return reinterpret_cast<std::byte*>(arrived.data()) + header.offset;
  };
  const auto take = [&](const FrameHeader& header, absl::Span<const std::byte> payload) {
    ++taken;
    if (payload.data() == place_of(header)) {
      ++placed;
    } else {
      std::copy(payload.begin(), payload.end(), place_of(header));
    }
    return true;
  };
  const auto place = [&](const FrameHeader& header, size_t bytes) -> std::byte* {
    EXPECT_EQ(bytes, size);
    return header.offset / size % 8 == 0 ? nullptr : place_of(header);
  };
  const absl::Time deadline = In(60);
  for (uint64_t next = 0; taken < kFrames;) {
    ASSERT_LT(MonotonicNow(), deadline);
    const absl::string_view payload = absl::string_view(sent).substr(next * size, size);
    FrameHeader header;
    header.offset = next * size;
    if (next < kFrames && *pair.a->TrySend(header, Bytes(payload))) ++next;
    ASSERT_TRUE(Drop(*pair.a).ok());
    ASSERT_TRUE(pair.b->Poll(FrameSink(take, place)).moved.ok());
  }
  EXPECT_TRUE(arrived == sent);
  EXPECT_GT(placed, kFrames / 2);
}

TEST(TcpTest, AnAcknowledgementOfWhatWasNotSentIsAnError) {
  const HalfPair pair = HalfConnected();
  std::string bytes("RLH5", 4);
  bytes += std::string(40, '\0') + std::string("\1\0\0\0\4\0\0\0", 8) + std::string(4, '\0');
  ASSERT_TRUE(net::SendAll(pair.raw.get(), bytes, In(20)).ok());
  const absl::Status error = ErrorOf(*pair.link);
  EXPECT_EQ(error.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(error.message()), HasSubstr("data that was not sent"));
}

// ---- Somebody on the way ----

// Two links whose bytes pass through a relay.
struct RelayedPair {
  explicit RelayedPair(FrameProtection protection)
      : acceptor_a(AHall()),
        acceptor_b(AHall()),
        to_a(*acceptor_a),
        to_b(*acceptor_b),
        a(*OpenTcpLink(acceptor_a, to_b.Address(), "rank 1", protection)),
        b(*OpenTcpLink(acceptor_b, to_a.Address(), "rank 0", protection)) {
    for (const absl::Time deadline = In(20); !a->connected() || !b->connected();) {
      if (MonotonicNow() >= deadline) {
        ADD_FAILURE() << "the links do not connect";
        break;
      }
      Pump();
      for (Link* link : {a.get(), b.get()}) link->Reconnect(MonotonicNow()).IgnoreError();
    }
    // What each side begins with has passed.
    for (int i = 0; i < 10; ++i) Pump();
  }
  void Pump() {
    to_a.Pump();
    to_b.Pump();
  }
  // From now on changes what a sends.
  void Change(const std::function<void(std::string& bytes)>& change) {
    const bool a_dials = acceptor_a->own().token < acceptor_b->own().token;
    (a_dials ? to_b : to_a).change = [=](bool from_caller, std::string& bytes) {
      if (from_caller == a_dials) change(bytes);
    };
  }

  std::shared_ptr<Acceptor> acceptor_a;
  std::shared_ptr<Acceptor> acceptor_b;
  railhead::testing::Relay to_a;
  railhead::testing::Relay to_b;
  std::unique_ptr<Link> a;
  std::unique_ptr<Link> b;
};

constexpr size_t kSealedHead = 56 + 2 * kSealSize;

// What b takes of a frame that a has sent, and how it ends: OK when it was taken.
absl::Status SendThrough(RelayedPair& pair, const std::string& payload, std::string* taken) {
  EXPECT_TRUE(*pair.a->TrySend({1, 2}, Bytes(payload)));
  for (const absl::Time deadline = In(20); MonotonicNow() < deadline;) {
    pair.Pump();
    const absl::StatusOr<bool> moved =
        pair.b
            ->Poll([&](const FrameHeader&, absl::Span<const std::byte> bytes) {
              taken->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
              return true;
            })
            .moved;
    if (!moved.ok()) return moved.status();
    if (*moved) return absl::OkStatus();
  }
  return absl::DeadlineExceededError("nothing has come");
}

// What is proven at the start says nothing of what follows.
TEST(TcpTest, WithoutSignaturesWhoeverIsOnTheWayMayChangeFrames) {
  RelayedPair pair(FrameProtection::kNone);
  pair.Change([](std::string& bytes) { bytes.back() = '?'; });
  std::string taken;
  EXPECT_TRUE(SendThrough(pair, "payload", &taken).ok());
  EXPECT_EQ(taken, "payloa?");
}

// With signatures alone, and with those of ciphers.
class SealedTest : public ::testing::TestWithParam<FrameProtection> {};
INSTANTIATE_TEST_SUITE_P(Frames, SealedTest, ::testing::ValuesIn(Protections()), name_of_frames);

TEST_P(SealedTest, OnlyEncryptionHidesThePayload) {
  const std::string payload(100, 'p');
  RelayedPair pair(GetParam());
  std::string seen;
  pair.Change([&seen](std::string& bytes) { seen += bytes; });
  std::string taken;
  EXPECT_TRUE(SendThrough(pair, payload, &taken).ok());
  EXPECT_EQ(taken, payload);
  EXPECT_EQ(seen.size(), kSealedHead + payload.size());
  EXPECT_EQ(seen.find("ppp") == std::string::npos, GetParam() != FrameProtection::kSigned);
}

TEST_P(SealedTest, NoBitOfAFrameMayChange) {
  const std::string payload(100, 'p');
  for (size_t at = 4; at < kSealedHead + payload.size(); at += at < kSealedHead ? 3 : 33) {
    // What cannot be the header of a frame at all is refused as such.
    if (at < 8 || (at >= 48 && at < 56)) continue;
    RelayedPair pair(GetParam());
    pair.Change([at](std::string& bytes) {
      if (bytes.size() > at) bytes[at] = static_cast<char>(bytes[at] ^ 4);
    });
    std::string taken;
    const absl::Status lost = SendThrough(pair, payload, &taken);
    EXPECT_EQ(taken, "") << at;
    EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable) << at;
    EXPECT_THAT(std::string(lost.message()), HasSubstr("its signature is wrong")) << at;
    EXPECT_FALSE(pair.b->connected());
  }
}

TEST_P(SealedTest, NoFrameMayBeRepeatedLeftOutOrPutIn) {
  const std::vector<std::function<void(std::string&)>> changes = {
      [](std::string& bytes) { bytes += bytes; },
      [](std::string& bytes) { bytes.erase(0, kSealedHead + 7); },
      [](std::string& bytes) {
        // The second frame in place of the first.
        bytes = bytes.substr(kSealedHead + 7) + bytes;
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    RelayedPair pair(GetParam());
    pair.Change(changes[i]);
    ASSERT_TRUE(*pair.a->TrySend({1, 0}, Bytes("first f")));
    std::string taken;
    absl::Status lost = SendThrough(pair, "secondf", &taken);
    for (const absl::Time deadline = In(20); lost.ok() && MonotonicNow() < deadline;) {
      pair.Pump();
      lost = Drop(*pair.b).status();
    }
    EXPECT_THAT(std::string(lost.message()), HasSubstr("its signature is wrong")) << i;
  }
}

// Whichever side loses the connection first, both come to a new one.
TEST_P(FramesTest, ALostLinkReconnects) {
  for (const bool first : {true, false}) {
    const Pair pair = Connected(GetParam());
    Link& loses = first ? *pair.a : *pair.b;
    Link& learns = first ? *pair.b : *pair.a;
    for (int round = 0; round < 5; ++round) {
      ASSERT_TRUE(*pair.a->TrySend({1, 2}, Bytes("never read")));
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

// A peer that computes does not read. Its window closes, which must not look like a dead network.
TEST(TcpTest, APeerThatDoesNotReadForLongIsNotDead) {
  const Pair pair = Connected();
  const std::string payload(pair.a->max_payload(), 'x');
  const absl::Time end = MonotonicNow() + absl::Seconds(3);
  uint64_t frames = 0;
  while (MonotonicNow() < end) {
    const absl::StatusOr<bool> taken = pair.a->TrySend({0, frames}, Bytes(payload));
    ASSERT_TRUE(taken.ok()) << taken.status();
    if (*taken) ++frames;
    const absl::StatusOr<bool> polled = Drop(*pair.a);
    ASSERT_TRUE(polled.ok()) << polled.status();
    absl::SleepFor(absl::Milliseconds(5));
  }
  uint64_t arrived = 0;
  const absl::Time deadline = In(20);
  while (arrived < frames && MonotonicNow() < deadline) {
    ASSERT_TRUE(Drop(*pair.a).ok());
    ASSERT_TRUE(pair.b
                    ->Poll([&](const FrameHeader& header, absl::Span<const std::byte>) {
                      EXPECT_EQ(header.offset, arrived++);
                      return true;
                    })
                    .moved.ok());
  }
  EXPECT_EQ(arrived, frames);
}

// ---- The pulse ----

class PulseTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kRoundTrip = absl::Milliseconds(5);
  // Looks every 10 ms for so long at a connection that was silent for `silent` before.
  bool StopsWithin(absl::Duration time, bool in_flight, absl::Duration silent,
                   absl::Duration round_trip = kRoundTrip) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(10)) {
      const uint32_t retransmits = t > absl::Milliseconds(200) ? 1 : 0;
      if (ack_timeout_.Stopped({in_flight, retransmits, silent + t, round_trip}, now_ + t))
        return true;
    }
    now_ += time;
    return false;
  }
  AckTimeout ack_timeout_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(PulseTest, SilenceAfterSendingIsTheEnd) {
  EXPECT_FALSE(StopsWithin(absl::Milliseconds(290), true, absl::ZeroDuration()));
}
TEST_F(PulseTest, LongerSilenceIsTheEnd) {
  EXPECT_TRUE(StopsWithin(absl::Milliseconds(330), true, absl::ZeroDuration()));
}
TEST_F(PulseTest, ARestBeforeItDoesNotCount) {
  EXPECT_FALSE(StopsWithin(absl::Seconds(60), false, absl::ZeroDuration()));
  EXPECT_FALSE(StopsWithin(absl::Milliseconds(290), true, absl::Seconds(60)));
}
TEST_F(PulseTest, AcknowledgementsKeepItAlive) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(StopsWithin(absl::Milliseconds(250), true, absl::ZeroDuration()));
  }
}
TEST_F(PulseTest, AClosedWindowIsNoSilence) {
  EXPECT_FALSE(StopsWithin(absl::Seconds(60), false, absl::ZeroDuration()));
}
TEST_F(PulseTest, WhoHasNotLookedForLongBelievesTheKernel) {
  EXPECT_FALSE(ack_timeout_.Stopped({true, 0, absl::ZeroDuration(), kRoundTrip}, now_));
  now_ += absl::Seconds(3);
  EXPECT_TRUE(ack_timeout_.Stopped({true, 3, absl::Seconds(3), kRoundTrip}, now_));
}
TEST_F(PulseTest, AnAnswerInTheTickOfTheLookIsOne) {
  EXPECT_FALSE(ack_timeout_.Stopped({true, 0, absl::ZeroDuration(), kRoundTrip}, now_));
  // It is answered at once, nobody looks for a while, and something else has just been sent.
  now_ += absl::Milliseconds(390);
  EXPECT_FALSE(ack_timeout_.Stopped({true, 0, absl::Milliseconds(392), kRoundTrip}, now_));
}
TEST_F(PulseTest, OverALongRoundTripOnlyARetransmissionTells) {
  EXPECT_FALSE(
      ack_timeout_.Stopped({true, 0, absl::Milliseconds(1), absl::Milliseconds(400)}, now_));
  now_ += absl::Milliseconds(390);
  EXPECT_FALSE(
      ack_timeout_.Stopped({true, 0, absl::Milliseconds(391), absl::Milliseconds(400)}, now_));
  now_ += absl::Milliseconds(400);
  EXPECT_TRUE(
      ack_timeout_.Stopped({true, 1, absl::Milliseconds(791), absl::Milliseconds(400)}, now_));
}

TEST(TcpTest, BadAddressesAreRefused) {
  const std::shared_ptr<Acceptor> own = AHall();
  const std::string good = AHall()->Address();
  for (const std::string& address : {std::string(), good.substr(0, good.size() - 1), good + "x",
                                     std::string(26, '\xff'), own->Address()}) {
    EXPECT_FALSE(OpenTcpLink(own, address, "rank 1").ok());
  }
}

TEST(TcpTest, ACloseOfTheRawSideShowsAsError) {
  HalfPair pair = HalfConnected();
  pair.raw.Reset();
  EXPECT_EQ(ErrorOf(*pair.link).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace railhead::transport
