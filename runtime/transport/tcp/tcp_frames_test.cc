// SPDX-License-Identifier: Apache-2.0
//
// Frames over TCP: they arrive whole and in order, are acknowledged, wake a sleeping receiver,
// and an end or nonsense on the stream is an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/now.h"
#include "runtime/net/fd.h"
#include "runtime/net/socket.h"
#include "runtime/testing/sleeper.h"
#include "runtime/testing/tcp_pair.h"
#include "runtime/transport/connect/acceptor.h"
#include "runtime/transport/connect/reconnector.h"
#include "runtime/transport/link.h"
#include "runtime/transport/tcp/frame_protection.h"
#include "runtime/transport/tcp/tcp.h"
#include "runtime/transport/tcp/tcp_links_for_test.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace railhead::transport {
namespace {

using Pair = railhead::testing::TcpPair;
using railhead::testing::Sleeper;
using ::testing::HasSubstr;

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
      if (*taken) {
        ++frames;
        if (forward) bytes_to_b += size;
        (forward ? to_b : to_a).push_back(std::move(sent));
      }
      // Small ones may wait for the next frame, of any size.
      if (random() % 3 == 0) {
        ASSERT_EQ(link.Push(), absl::OkStatus());
      }
    }
    if (random() % 2 == 0) receive(*pair.b, to_b);
    if (random() % 2 == 0) receive(*pair.a, to_a);
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

// A copy of what the kernel does not take at once would cost as much as the kernel's own.
TEST(TcpTest, TheRestOfAnAwaitedFrameIsReadWhereItIs) {
  for (const bool awaited : {true, false}) {
    const Pair pair = Connected();
    std::string payload(pair.a->max_payload(), 'x');
    FrameHeader header;
    header.awaited = awaited;
    uint64_t sent = 0;
    for (; pair.a->Flushed(); ++sent) {
      ASSERT_LT(sent, 1000U);
      ASSERT_TRUE(*pair.a->TrySend(header, Bytes(payload)));
    }
    payload.back() = 'y';
    uint64_t came = 0;
    char last = '-';
    const absl::Time deadline = In(20);
    while (came < sent) {
      ASSERT_LT(MonotonicNow(), deadline);
      const auto take = [&](const FrameHeader&, absl::Span<const std::byte> arrived) {
        EXPECT_EQ(arrived.size(), payload.size());
        last = static_cast<char>(arrived.back());
        ++came;
        return true;
      };
      ASSERT_TRUE(pair.b->Poll(take).moved.ok());
      ASSERT_TRUE(Drop(*pair.a).ok());
    }
    EXPECT_EQ(last, awaited ? 'y' : 'x');
  }
}

// An acknowledgement cannot overtake the rest of a frame, and must not be forgotten behind it.
TEST_P(FramesTest, AnAcknowledgementFollowsTheRestOfAFrame) {
  const Pair pair = Connected(GetParam());
  const std::string payload(pair.a->max_payload(), 'x');
  FrameHeader header;
  header.awaited = true;
  uint64_t sent = 0;
  for (; pair.a->Flushed(); ++sent) {
    ASSERT_LT(sent, 1000U);
    ASSERT_TRUE(*pair.a->TrySend(header, Bytes(payload)));
  }
  ASSERT_TRUE(*pair.b->TrySend(header, Bytes("wants an answer")));
  ASSERT_EQ(pair.b->Push(), absl::OkStatus());
  const absl::Time deadline = In(20);
  while (pair.a->stats().receive_bytes == 0) {
    ASSERT_LT(MonotonicNow(), deadline);
    ASSERT_TRUE(Drop(*pair.a).ok());
  }
  ASSERT_FALSE(pair.a->Flushed());
  PumpUntil(*pair.a, *pair.b, [&] { return Unacknowledged(*pair.b) == 0; });
  PumpUntil(*pair.a, *pair.b, [&] { return pair.a->Flushed(); });
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
  ASSERT_EQ(pair.a->Push(), absl::OkStatus());
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
  ASSERT_EQ(pair.a->Push(), absl::OkStatus());
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

// The place of a large frame may be known only once the owner has seen the short one before it.
TEST_P(FramesTest, LargeFramesGoToThePlaceThatAShortOneMakesKnown) {
  const Pair pair = Connected(GetParam());
  const size_t size = pair.a->max_payload();
  constexpr uint64_t kPairs = 40;
  const std::string note(40, 'n');
  std::string large(size, '\0');
  std::string memory(size, '\0');
  uint64_t notes = 0;   // taken
  uint64_t known = 0;   // of these, seen by the owner
  uint64_t larges = 0;  // taken
  uint64_t placed = 0;
  const auto memory_begin = reinterpret_cast<std::byte*>(memory.data());
  const auto take = [&](const FrameHeader& header, absl::Span<const std::byte> payload) {
    if (payload.size() == note.size()) {
      ++notes;
      return true;
    }
    EXPECT_EQ(header.offset, larges);
    if (payload.data() == memory_begin) {
      ++placed;
    } else {
      std::copy(payload.begin(), payload.end(), memory_begin);
    }
    EXPECT_TRUE(memory == std::string(size, static_cast<char>('a' + larges % 26)));
    ++larges;
    return true;
  };
  const auto place = [&](const FrameHeader& header, size_t) {
    return header.offset < known ? memory_begin : nullptr;
  };
  const absl::Time deadline = In(60);
  for (uint64_t next = 0; next < kPairs; ++next) {
    large.assign(size, static_cast<char>('a' + next % 26));
    FrameHeader header;
    header.offset = next;
    bool note_sent = false;
    bool large_sent = false;
    while (larges <= next) {
      ASSERT_LT(MonotonicNow(), deadline);
      if (!note_sent) note_sent = *pair.a->TrySend(header, Bytes(note));
      if (note_sent && !large_sent) large_sent = *pair.a->TrySend(header, Bytes(large));
      ASSERT_TRUE(Drop(*pair.a).ok());
      if (!large_sent) continue;
      ASSERT_TRUE(pair.b->Poll(FrameSink(take, place)).moved.ok());
      known = notes;
    }
  }
  EXPECT_GT(placed, kPairs / 2);
}

// A frame may be dropped at any time: before its last byte, and after the sink has refused it.
TEST_P(FramesTest, APlacedFrameMayBeDroppedAtAnyTime) {
  constexpr uint64_t kFrames = 64;
  for (unsigned seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    const Pair pair = Connected(GetParam());
    std::mt19937 random(seed);
    const auto one_in = [&random](unsigned n) { return random() % n == 0; };
    const std::string payload(pair.a->max_payload(), 'x');
    std::string memory(payload.size(), '\0');
    const auto place = [&](const FrameHeader&, size_t) -> std::byte* {
      return one_in(5) ? nullptr : reinterpret_cast<std::byte*>(memory.data());
    };
    bool refused = false;
    uint64_t next = 0;
    const auto take = [&](const FrameHeader& header, absl::Span<const std::byte> bytes) {
      EXPECT_GE(header.transfer, next);
      EXPECT_EQ(bytes.size(), header.size);
      refused = one_in(2);
      if (!refused) next = header.transfer + 1;
      return !refused;
    };
    int dropped_late = 0;
    uint64_t sent = 0;
    uint64_t bytes = 0;
    const absl::Time deadline = In(60);
    while (sent < kFrames || pair.b->stats().receive_bytes < bytes) {
      ASSERT_LT(MonotonicNow(), deadline);
      FrameHeader header;
      header.transfer = sent;
      header.size = one_in(3) ? 1 + random() % 5000 : payload.size();
      if (sent < kFrames && *pair.a->TrySend(header, Bytes(payload).first(header.size))) {
        ++sent;
        bytes += header.size;
      }
      ASSERT_TRUE(Drop(*pair.a).ok());
      refused = false;
      const absl::StatusOr<bool> moved = pair.b->Poll(FrameSink(take, place)).moved;
      ASSERT_TRUE(moved.ok()) << moved.status();
      if (!one_in(3)) continue;
      dropped_late += refused ? 1 : 0;
      pair.b->StopPlacing();
    }
    EXPECT_GT(dropped_late, 0);
  }
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

TEST(TcpTest, ACloseOfTheRawSideShowsAsError) {
  HalfPair pair = HalfConnected();
  pair.raw.Reset();
  EXPECT_EQ(ErrorOf(*pair.link).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace railhead::transport
