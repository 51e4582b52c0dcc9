// SPDX-License-Identifier: Apache-2.0
//
// Frames from memory that the user has made known.
#include "runtime/transport/verbs/user_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/page_changes.h"
#include "runtime/transport/verbs/verbs_pair_for_test.h"

namespace railhead::transport::verbs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kPage = 4096;

class UserMemoryTest : public EveryNetworkTest {
 protected:
  // Values that repeat late.
  static std::vector<std::byte> Pattern(size_t size) {
    std::vector<std::byte> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251);
    return bytes;
  }
  static std::string Text(absl::Span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::shared_ptr<const void> Know(absl::Span<const std::byte> memory,
                                   std::shared_ptr<const void> owner = nullptr) {
    return a_.device->memory()->Know(memory, std::move(owner), Logger(LogLevel::kInfo, "rank 0"));
  }
  // What fake0 has registered of this memory.
  std::vector<FakeRegion> RegionsOf(absl::Span<const std::byte> memory) const {
    const auto begin = reinterpret_cast<uint64_t>(memory.data());
    std::vector<FakeRegion> regions;
    for (const FakeRegion& region : fake_->regions("fake0")) {
      if (region.address >= begin && region.address < begin + memory.size()) {
        regions.push_back(region);
      }
    }
    return regions;
  }
  // How many bytes of it a NIC has read; nothing when it is not registered.
  std::optional<uint64_t> SentFrom(absl::Span<const std::byte> memory) const {
    std::optional<uint64_t> sent;
    for (const FakeRegion& region : RegionsOf(memory)) {
      sent = sent.value_or(0) + region.bytes_sent;
    }
    return sent;
  }
  static FrameHeader Awaited(uint64_t offset = 0) {
    FrameHeader header = {1, offset};
    header.awaited = true;
    return header;
  }
  // Other links of the same two devices.
  using Others = std::vector<std::unique_ptr<Link>>;
  absl::Status Connect(Others& others) {
    const auto acceptor_a = OpenAcceptor();
    const auto acceptor_b = OpenAcceptor();
    others.push_back(*OpenVerbsLink(*a_.device, acceptor_a, acceptor_b->Address(), "rank 2"));
    others.push_back(*OpenVerbsLink(*b_.device, acceptor_b, acceptor_a->Address(), "rank 3"));
    return ConnectLinks(*fake_, *others.rbegin()[1], *others.rbegin()[0]);
  }
  bool TakesFrame(absl::Span<const std::byte> payload, const FrameHeader& header = Awaited()) {
    const absl::StatusOr<bool> taken = a_.link->TrySend(header, payload);
    return taken.ok() && *taken;
  }
  // Sends it, and returns what arrives.
  std::string Carry(absl::Span<const std::byte> payload, const FrameHeader& header = Awaited()) {
    b_.received.clear();
    if (!TakesFrame(payload, header)) return "not taken";
    PollUntilQuiet();
    return b_.received.size() == 1 ? b_.received.front().second : "not arrived";
  }
};

INSTANTIATE_TEST_SUITE_P(Networks, UserMemoryTest, ::testing::ValuesIn(kEveryWay), WayName);

// A registration keeps the pages that were there.
TEST_P(UserMemoryTest, MemoryOfASegmentIsRegisteredAnewAfterAChangeOfPages) {
  ConnectBoth();
  const std::vector<std::byte> segment = Pattern(50000);
  const std::vector<std::byte> other = Pattern(50000);
  const auto known = Know(segment, std::make_shared<int>(0));
  const auto known_other = Know(other);
  EXPECT_EQ(Carry(segment), Text(segment));
  EXPECT_EQ(Carry(other), Text(other));
  EXPECT_EQ(SentFrom(segment), segment.size());
  ++page_changes;
  EXPECT_EQ(Carry(segment), Text(segment));
  EXPECT_EQ(Carry(other), Text(other));
  EXPECT_EQ(SentFrom(segment), segment.size()) << "by a new registration";
  EXPECT_EQ(SentFrom(other), 2 * other.size());
}

TEST_P(UserMemoryTest, LargeAwaitedFramesAreReadFromWhereTheyLie) {
  ConnectBoth();
  const std::vector<std::byte> memory = Pattern(300000);
  const auto known = Know(memory);
  EXPECT_THAT(RegionsOf(memory), SizeIs(1)) << "at once: sending registers nothing";
  const absl::Span<const std::byte> all = memory;
  const size_t most = a_.link->max_payload();
  uint64_t sent = 0;
  for (const auto& [offset, size] : std::vector<std::pair<size_t, size_t>>{
           {0, most}, {most, most}, {300000 - kPage, kPage}, {77, 5001}, {1, most}}) {
    EXPECT_EQ(Carry(all.subspan(offset, size), Awaited(offset)), Text(all.subspan(offset, size)));
    EXPECT_EQ(b_.received.front().first.offset, offset);
    EXPECT_TRUE(b_.received.front().first.awaited);
    sent += size;
    EXPECT_EQ(SentFrom(memory), sent);
  }
  ASSERT_THAT(RegionsOf(memory), SizeIs(1)) << "and registered once";
  EXPECT_EQ(RegionsOf(memory)[0].length, memory.size());
  EXPECT_EQ(RegionsOf(memory)[0].access, IBV_ACCESS_RELAXED_ORDERING) << "nobody else may touch it";
}

TEST_P(UserMemoryTest, OtherFramesAreCopied) {
  ConnectBoth();
  std::vector<std::byte> memory = Pattern(3 * kPage);
  const auto known = Know(absl::MakeConstSpan(memory).first(2 * kPage));
  const absl::Span<const std::byte> all = memory;
  FrameHeader repeated = Awaited();
  repeated.repeated = true;
  struct Case {
    const char* what;
    absl::Span<const std::byte> bytes;
    FrameHeader header;
  };
  for (const Case& c : {Case{"small", all.first(kPage - 1), Awaited()},
                        Case{"not awaited", all.first(kPage), FrameHeader{1, 0}},
                        Case{"repeated", all.first(kPage), repeated},
                        Case{"not known", all.subspan(2 * kPage), Awaited()},
                        Case{"half known", all.subspan(kPage), Awaited()}}) {
    const std::string expected = Text(c.bytes);
    b_.received.clear();
    fake_->SetPortState("fake1", IBV_PORT_DOWN);
    ASSERT_TRUE(TakesFrame(c.bytes, c.header)) << c.what;
    std::fill(memory.begin(), memory.end(), std::byte{0xee});
    fake_->SetPortState("fake1", IBV_PORT_ACTIVE);
    fake_->AdvanceTime(absl::Milliseconds(200));
    PollUntilQuiet();
    ASSERT_THAT(b_.received, SizeIs(1)) << c.what;
    EXPECT_EQ(b_.received[0].second, expected) << c.what;
    EXPECT_EQ(SentFrom(memory).value_or(0), 0U) << c.what;
    // In place: spans of it are in use.
    std::ranges::copy(Pattern(memory.size()), memory.begin());
  }
}

// The same piece may be known several times, and pieces may overlap.
TEST_P(UserMemoryTest, AnyPieceThatHoldsAllBytesWillDo) {
  ConnectBoth();
  const std::vector<std::byte> memory = Pattern(100000);
  const absl::Span<const std::byte> all = memory;
  auto whole = Know(all);
  auto again = Know(all);
  auto front = Know(all.first(3 * kPage));
  auto inner = Know(all.subspan(kPage, kPage));
  const auto registered = [&] { return RegionsOf(memory).size(); };
  EXPECT_EQ(Carry(all.subspan(kPage, kPage)), Text(all.subspan(kPage, kPage)));
  EXPECT_EQ(registered(), 4U);
  EXPECT_EQ(SentFrom(all.subspan(kPage, 1)), kPage) << "by the one that begins last";
  inner.reset();
  EXPECT_EQ(registered(), 3U);
  EXPECT_EQ(Carry(all.subspan(2 * kPage, 2 * kPage)), Text(all.subspan(2 * kPage, 2 * kPage)));
  EXPECT_EQ(SentFrom(memory), 2 * kPage);
  again.reset();
  EXPECT_EQ(Carry(all.subspan(2 * kPage, 2 * kPage)), Text(all.subspan(2 * kPage, 2 * kPage)));
  EXPECT_EQ(SentFrom(memory), 2 * kPage) << "by the other registration of the whole";
  whole.reset();
  EXPECT_EQ(registered(), 1U);
  EXPECT_EQ(Carry(all.first(kPage)), Text(all.first(kPage)));
  EXPECT_EQ(SentFrom(memory), kPage);
  EXPECT_EQ(Carry(all.subspan(kPage, 3 * kPage)), Text(all.subspan(kPage, 3 * kPage)));
  EXPECT_EQ(SentFrom(memory), kPage) << "part of it is no more known";
}

TEST_P(UserMemoryTest, ForgottenMemoryIsCopied) {
  ConnectBoth();
  const std::vector<std::byte> memory = Pattern(2 * kPage);
  auto known = Know(memory);
  EXPECT_EQ(Carry(memory), Text(memory));
  EXPECT_EQ(SentFrom(memory), memory.size());
  EXPECT_TRUE(a_.link->Flushed());
  known.reset();
  EXPECT_EQ(SentFrom(memory), std::nullopt) << "deregistered at once";
  EXPECT_EQ(Carry(memory), Text(memory));
  EXPECT_EQ(SentFrom(memory), std::nullopt);
}

// What the NIC may still read keeps its registration, and its owner.
TEST_P(UserMemoryTest, ForgettingWaitsForTheNic) {
  ConnectBoth();
  auto owned = std::make_shared<std::vector<std::byte>>(Pattern(2 * kPage));
  const std::string text = Text(*owned);
  const std::weak_ptr<const void> alive = owned;
  const absl::Span<const std::byte> memory = *owned;
  fake_->HoldCompletions("fake0", true);
  auto known = Know(memory, std::move(owned));
  ASSERT_TRUE(TakesFrame(memory));
  known.reset();
  PollUntilQuiet();
  EXPECT_THAT(b_.received, SizeIs(1));
  EXPECT_FALSE(a_.link->Flushed());
  EXPECT_FALSE(alive.expired()) << "the acknowledgement is still to come";
  EXPECT_THAT(RegionsOf(memory), SizeIs(1));
  fake_->HoldCompletions("fake0", false);
  PollUntilQuiet();
  EXPECT_EQ(b_.received[0].second, text);
  EXPECT_TRUE(a_.link->Flushed());
  EXPECT_TRUE(alive.expired());
}

// Later frames of a transfer whose memory was forgotten meanwhile are copied: what was found for
// the first ones does not keep the memory, nor does a link that sends nothing more.
TEST_P(UserMemoryTest, ForgettingWithinATransfer) {
  ConnectBoth();
  const std::vector<std::byte> memory = Pattern(6 * kPage);
  const absl::Span<const std::byte> all = memory;
  auto known = Know(memory);
  fake_->HoldCompletions("fake0", true);
  ASSERT_TRUE(TakesFrame(all.first(2 * kPage)));
  known.reset();
  EXPECT_THAT(RegionsOf(memory), SizeIs(1)) << "the NIC may read it";
  ASSERT_TRUE(TakesFrame(all.subspan(2 * kPage, 2 * kPage), Awaited(2 * kPage)));
  const auto other = Know(all.subspan(4 * kPage));
  ASSERT_TRUE(TakesFrame(all.subspan(4 * kPage), Awaited(4 * kPage)));
  EXPECT_EQ(SentFrom(all.first(1)), 2 * kPage);
  fake_->HoldCompletions("fake0", false);
  PollUntilQuiet();
  EXPECT_EQ(SentFrom(all.first(4 * kPage)), std::nullopt) << "deregistered";
  EXPECT_EQ(SentFrom(all.subspan(4 * kPage)), 2 * kPage);
  std::string arrived;
  for (const auto& [header, bytes] : b_.received) arrived += bytes;
  EXPECT_EQ(arrived, Text(memory));
}

// Whatever was made known and forgotten between two looks: what a reader finds is what is known.
TEST_P(UserMemoryTest, AReaderFindsWhatIsKnownNow) {
  ConnectBoth();
  const std::vector<std::byte> memory = Pattern(64 * kPage);
  const absl::Span<const std::byte> all = memory;
  UserMemory::Reader reader(*a_.device->memory());
  std::minstd_rand random(1);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random()) % limit; };
  struct Piece {
    size_t begin = 0;
    size_t size = 0;
    std::shared_ptr<const void> known;
  };
  std::vector<Piece> pieces;
  for (int step = 0; step < 3000; ++step) {
    const size_t begin = below(memory.size() - 1);
    const size_t size = 1 + below(std::min(memory.size() - begin, size_t{1} << below(18)));
    const size_t what = below(8);
    if (what == 0) {
      pieces.push_back({begin, size, Know(all.subspan(begin, size))});
    } else if (what == 1 && !pieces.empty()) {
      pieces.erase(pieces.begin() + static_cast<ptrdiff_t>(below(pieces.size())));
    } else {
      const bool is_known = std::ranges::any_of(pieces, [&](const Piece& piece) {
        return piece.begin <= begin && begin + size <= piece.begin + piece.size;
      });
      ASSERT_EQ(reader.Find(all.subspan(begin, size)) != nullptr, is_known) << "step " << step;
    }
    ASSERT_EQ(RegionsOf(memory).size(), pieces.size()) << "step " << step;
  }
}

// Registrations come and go on another thread, as rhCommRegister may be called at any time.
TEST_P(UserMemoryTest, OtherThreadsRegisterWhileFramesAreSent) {
  ConnectBoth();
  const std::vector<std::byte> memory = Pattern(4 * kPage);
  const absl::Span<const std::byte> all = memory;
  const auto known = Know(all.first(2 * kPage));
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) const auto passing = Know(all.subspan(kPage));
  });
  size_t wrong = 0;
  for (size_t i = 0; i < 200; ++i) {
    const size_t offset = i % 3 * kPage;
    const std::string arrived = Carry(all.subspan(offset, kPage), Awaited(offset));
    wrong += arrived == Text(all.subspan(offset, kPage)) ? 0 : 1;
  }
  over = true;
  other.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_THAT(RegionsOf(memory), SizeIs(1));
}

// The peer has the frame, and its acknowledgement is late: the sender may change the bytes.
TEST_P(UserMemoryTest, BytesMayChangeOnceThePeerHasThem) {
  ConnectBoth();
  std::vector<std::byte> memory = Pattern(2 * kPage);
  const std::string text = Text(memory);
  const auto known = Know(memory);
  fake_->HoldCompletions("fake0", true);
  ASSERT_TRUE(TakesFrame(memory));
  PollUntilQuiet();
  ASSERT_EQ(a_.unacknowledged, 0U);
  std::fill(memory.begin(), memory.end(), std::byte{0xee});
  fake_->HoldCompletions("fake0", false);
  PollUntilQuiet();
  ASSERT_THAT(b_.received, SizeIs(1));
  EXPECT_EQ(b_.received[0].second, text);
}

TEST_P(UserMemoryTest, ALostConnectionReadsNothingMore) {
  ConnectBoth();
  for (const bool link_goes : {false, true}) {
    auto memory = std::make_unique<std::vector<std::byte>>(Pattern(2 * kPage));
    auto known = Know(*memory);
    fake_->SetPortState("fake1", IBV_PORT_DOWN);
    if (a_.link->connected()) {
      ASSERT_TRUE(TakesFrame(*memory));
      EXPECT_FALSE(a_.link->Flushed());
      EXPECT_THAT(RegionsOf(*memory), SizeIs(1));
    }
    if (link_goes) {
      a_.link.reset();
    } else {
      a_.link->Drop("the test says so");
      EXPECT_TRUE(a_.link->Flushed());
    }
    known.reset();
    EXPECT_THAT(RegionsOf(*memory), IsEmpty());
    memory.reset();  // a read of it is an error of its own under ASan
    fake_->SetPortState("fake1", IBV_PORT_ACTIVE);
    fake_->AdvanceTime(absl::Seconds(3));
    b_.Poll().IgnoreError();
  }
}

TEST_P(UserMemoryTest, WhatCannotBePinnedIsCopiedAndNotTriedAgain) {
  FakeDevice tight = Device("fake0", "10.0.0.1");
  tight.memlock = uint64_t{3} << 20;
  Make({tight, Device("fake1", "10.0.0.2")});
  ConnectBoth();
  const std::vector<std::byte> large = Pattern(size_t{2} << 20);
  const std::vector<std::byte> small = Pattern(2 * kPage);
  const absl::Span<const std::byte> piece = absl::MakeConstSpan(large).first(2 * kPage);
  ::testing::internal::CaptureStderr();
  const auto known = Know(large);
  const auto other = Know(small);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Carry(piece), Text(piece));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("rail 0, device fake0 port 1: cannot pin and register 2097152 bytes"));
  EXPECT_THAT(log, HasSubstr("RLIMIT_MEMLOCK"));
  EXPECT_EQ(log.find("cannot pin"), log.rfind("cannot pin")) << log;
  EXPECT_THAT(RegionsOf(large), IsEmpty());
  EXPECT_EQ(Carry(small), Text(small));
  EXPECT_EQ(SentFrom(small), small.size()) << "what can be pinned still is";
}

TEST_P(UserMemoryTest, ConnectionsComeBeforeIt) {
  FakeDevice tight = Device("fake0", "10.0.0.1");
  tight.memlock = uint64_t{3} << 20;
  Make({tight, Device("fake1", "10.0.0.2")});
  ConnectBoth();
  const std::vector<std::byte> memory = Pattern((tight.memlock - (uint64_t{2} << 20)) * 8 / 10);
  const absl::Span<const std::byte> piece = absl::MakeConstSpan(memory).first(2 * kPage);
  const auto known = Know(memory);
  EXPECT_EQ(Carry(piece), Text(piece));
  EXPECT_EQ(SentFrom(memory), piece.size());
  // Another link of the same device.
  Others others;
  const absl::Status another = Connect(others);
  ASSERT_TRUE(another.ok()) << another;
  EXPECT_THAT(RegionsOf(memory), IsEmpty());
  EXPECT_EQ(Carry(piece), Text(piece)) << "copied";
  const auto fresh = Know(piece);
  EXPECT_EQ(Carry(piece), Text(piece));
  EXPECT_EQ(SentFrom(memory), piece.size()) << "what is made known later may be registered";
}

// An adapter without queue pairs says ENOMEM, too. Memory that was given up for that comes back.
TEST_P(UserMemoryTest, RunningOutOfQueuePairsDoesNotEndIt) {
  FakeDevice few = Device("fake0", "10.0.0.1");
  few.queue_pairs = 4;  // as many as one link has at most
  Make({few, Device("fake1", "10.0.0.2")});
  ConnectBoth();
  Others others;
  absl::Status another;
  const std::vector<std::byte> memory = Pattern(2 * kPage);
  const auto known = Know(memory);
  EXPECT_EQ(Carry(memory), Text(memory));
  EXPECT_EQ(SentFrom(memory), memory.size());
  while (another.ok()) another = Connect(others);
  EXPECT_THAT(std::string(another.message()), HasSubstr("run fewer ranks on the node"));
  EXPECT_EQ(Carry(memory), Text(memory));
  EXPECT_EQ(SentFrom(memory), memory.size()) << "registered anew, and sent from";
  EXPECT_THAT(RegionsOf(memory), SizeIs(1));
}

}  // namespace
}  // namespace railhead::transport::verbs
