// SPDX-License-Identifier: Apache-2.0
//
// Links that work: data, order, credits, completions, waiting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "runtime/testing/sleeper.h"
#include "runtime/transport/verbs/verbs_pair_for_test.h"

namespace railhead::transport::verbs {
namespace {

using railhead::testing::Sleeper;

class LinkTest : public EveryNetworkTest {};

INSTANTIATE_TEST_SUITE_P(Networks, LinkTest, ::testing::ValuesIn(kEveryWay), WayName);

std::string RandomBytes(std::mt19937& random, size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; i += 4) {
    const uint32_t word = random();
    std::memcpy(&bytes[i], &word, std::min<size_t>(4, size - i));
  }
  return bytes;
}

TEST_P(LinkTest, AFrameArrivesAsItWasSent) {
  ConnectBoth();
  ASSERT_TRUE(a_.Send(7, 4096, "forward").value());
  ASSERT_TRUE(b_.Send(uint64_t{1} << 40, uint64_t{1} << 50, "back").value());
  PollUntilQuiet();
  ASSERT_EQ(b_.received.size(), 1u);
  EXPECT_EQ(b_.received[0].first.transfer, 7u);
  EXPECT_EQ(b_.received[0].first.offset, 4096u);
  EXPECT_EQ(b_.received[0].second, "forward");
  ASSERT_EQ(a_.received.size(), 1u);
  EXPECT_EQ(a_.received[0].first.transfer, uint64_t{1} << 40);
  EXPECT_EQ(a_.received[0].first.offset, uint64_t{1} << 50);
  EXPECT_EQ(a_.received[0].second, "back");
  EXPECT_TRUE(a_.link->Flushed());
  EXPECT_EQ(a_.link->stats().transmit_bytes, 7u);
  EXPECT_EQ(a_.link->stats().receive_bytes, 4u);
}

TEST_P(LinkTest, SizesFromNothingToTheLargest) {
  ConnectBoth();
  const size_t most = a_.link->max_payload();
  EXPECT_EQ(most, 65536u);
  std::mt19937 random(3);
  std::vector<std::string> sent;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{31}, size_t{188}, size_t{189},
                            size_t{4064}, size_t{4096}, most - 1, most}) {
    sent.push_back(RandomBytes(random, size));
    ASSERT_TRUE(a_.Send(0, 0, sent.back()).value());
    PollUntilQuiet();
  }
  ASSERT_EQ(b_.received.size(), sent.size());
  for (size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(b_.received[i].second, sent[i]) << i;
  EXPECT_GT(fake_->inline_sends(), 0u);
}

TEST_P(LinkTest, ATooLargeFrameIsRefusedAndHarmsNothing) {
  ConnectBoth();
  EXPECT_EQ(a_.Send(0, 0, std::string(a_.link->max_payload() + 1, 'x')).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(a_.Send(0, 0, "fine").value());
  PollUntilQuiet();
  EXPECT_EQ(b_.received.size(), 1u);
}

TEST_P(LinkTest, ASinkThatIsNotReadyGetsTheSameFrameAgainAndInOrder) {
  ConnectBoth();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(a_.Send(0, i, std::to_string(i)).value());
  b_.accept = false;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(b_.Poll().ok());
  EXPECT_TRUE(b_.received.empty());
  b_.accept = true;
  PollUntilQuiet();
  ASSERT_EQ(b_.received.size(), 5u);
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(b_.received[i].first.offset, i);
}

TEST_P(LinkTest, TheSinkReadsWhereTheNicWrote) {
  ConnectBoth();
  ASSERT_TRUE(a_.Send(0, 0, "in place").value());
  ASSERT_TRUE(a_.Poll().ok());
  bool inside = false;
  ASSERT_TRUE(b_.link
                  ->Poll([&](const FrameHeader&, absl::Span<const std::byte> payload) {
                    const auto at = reinterpret_cast<uint64_t>(payload.data());
                    for (const FakeRegion& region : fake_->regions("fake1")) {
                      inside = inside || (at >= region.address &&
                                          at + payload.size() <= region.address + region.length);
                    }
                    EXPECT_EQ(at % 64, 0u);
                    return true;
                  })
                  .moved.ok());
  EXPECT_TRUE(inside);
}

// Both sides send until they can no more, with nobody taking anything; then both go on.
TEST_P(LinkTest, BothSidesOutOfCreditsAtOnce) {
  ConnectBoth();
  a_.accept = b_.accept = false;
  uint64_t a_sent = 0;
  uint64_t b_sent = 0;
  for (int round = 0; round < 100; ++round) {
    while (a_.Send(0, a_sent, "a").value()) ++a_sent;
    while (b_.Send(0, b_sent, "b").value()) ++b_sent;
    ASSERT_TRUE(a_.Poll().ok());
    ASSERT_TRUE(b_.Poll().ok());
  }
  EXPECT_EQ(a_sent, 16u);
  EXPECT_EQ(b_sent, 16u);
  EXPECT_EQ(fake_->receiver_not_ready(), 0u);

  a_.accept = b_.accept = true;
  for (int round = 0; round < 20; ++round) {
    PollUntilQuiet();
    while (a_.Send(0, a_sent, "a").value()) ++a_sent;
    while (b_.Send(0, b_sent, "b").value()) ++b_sent;
  }
  PollUntilQuiet();
  EXPECT_EQ(b_.received.size(), a_sent);
  EXPECT_EQ(a_.received.size(), b_sent);
  EXPECT_GT(a_sent, 200u);
}

// The worst case of thresholds: both windows are used up, and each side takes just one frame and
// then waits for the other to send one more.
TEST_P(LinkTest, OneConsumedFrameIsEnoughToGoOnWhenTheWindowIsUsedUp) {
  ConnectBoth();
  a_.accept = b_.accept = false;
  uint64_t a_sent = 0;
  uint64_t b_sent = 0;
  while (a_.Send(0, a_sent, "a").value()) ++a_sent;
  while (b_.Send(0, b_sent, "b").value()) ++b_sent;
  PollUntilQuiet();
  for (int round = 0; round < 50; ++round) {
    for (Side* side : {&a_, &b_}) {
      int taken = 0;
      ASSERT_TRUE(
          side->link
              ->Poll([&](const FrameHeader&, absl::Span<const std::byte>) { return taken++ == 0; })
              .moved.ok());
    }
    PollUntilQuiet();
    ASSERT_TRUE(a_.Send(0, a_sent++, "a").value()) << round;
    ASSERT_TRUE(b_.Send(0, b_sent++, "b").value()) << round;
  }
}

TEST_P(LinkTest, NoMoreThanAQuarterOfAMebibyteOnTheWire) {
  ConnectBoth();
  fake_->HoldCompletions("fake0", true);
  const std::string large(a_.link->max_payload(), 'x');
  uint64_t sent = 0;
  for (int round = 0; round < 50; ++round) {
    while (a_.Send(0, sent, large).value()) ++sent;
    ASSERT_TRUE(a_.Poll().ok());
    ASSERT_TRUE(b_.Poll().ok());
  }
  EXPECT_EQ(sent * large.size(), 256u * 1024);
  EXPECT_EQ(a_.link->load().backlog, 256u * 1024);
  EXPECT_TRUE(a_.link->Flushed()) << "copied: nobody need wait for it";
  fake_->HoldCompletions("fake0", false);
  PollUntilQuiet();
  EXPECT_EQ(a_.link->load().backlog, 0u);
}

// On a rail that works nobody waits for acknowledgements; on one that nothing was heard of for a
// while it may have died unnoticed.
TEST_P(LinkTest, AfterASilenceOnlyWhatIsAcknowledgedIsFlushed) {
  ConnectBoth();
  fake_->HoldCompletions("fake0", true);
  ASSERT_TRUE(a_.Send(0, 0, "at once").value());
  EXPECT_TRUE(a_.link->Flushed());
  fake_->AdvanceTime(absl::Milliseconds(200));
  EXPECT_FALSE(a_.link->Flushed());
  fake_->HoldCompletions("fake0", false);
  PollUntilQuiet();
  EXPECT_TRUE(a_.link->Flushed());
  EXPECT_EQ(b_.received.size(), 1u);
}

// Memory of the send ring must not change before the NIC has read it (the fake reads late), and
// nothing counts as delivered before it has arrived. The sender's ring is the smaller one here, so
// that credits alone would not protect it.
TEST_P(LinkTest, SlotsAreNotReusedBeforeTheyAreAcknowledged) {
  FakeDevice tight = Device("fake0", "10.0.0.1");
  tight.memlock = uint64_t{800} * 1024;
  Make({tight, Device("fake1", "10.0.0.2")});
  ConnectBoth();
  fake_->MoveAtRandom(11);
  std::mt19937 random(12);
  std::vector<std::string> sent;
  std::string next = RandomBytes(random, 6000);
  for (int i = 0; i < 100000 && !(sent.size() == 400 && a_.link->load().backlog == 0); ++i) {
    while (sent.size() < 400) {
      const absl::StatusOr<bool> taken = a_.Send(0, sent.size(), next);
      ASSERT_TRUE(taken.ok()) << taken.status();
      if (!*taken) break;
      sent.push_back(std::exchange(next, RandomBytes(random, random() % 6000)));
    }
    ASSERT_TRUE(a_.Poll().ok());
    if (a_.link->load().backlog == 0) {
      ASSERT_EQ(fake_->undelivered("fake0"), 0u);
    }
    ASSERT_TRUE(b_.Poll().ok());
  }
  ASSERT_TRUE(b_.Poll().ok());
  ASSERT_EQ(b_.received.size(), 400u);
  for (size_t i = 0; i < sent.size(); ++i) ASSERT_EQ(b_.received[i].second, sent[i]) << i;
}

TEST_P(LinkTest, SmallFramesDoNotAllAskForACompletionAndAreCountedNevertheless) {
  ConnectBoth();
  const uint64_t before = fake_->signaled_sends();
  for (int i = 0; i < 15; ++i) ASSERT_TRUE(a_.Send(0, i, "small").value());
  EXPECT_LT(fake_->signaled_sends() - before, 8u);
  EXPECT_EQ(a_.link->load().backlog, 15 * 5u);
  PollUntilQuiet();
  EXPECT_EQ(a_.link->load().backlog, 0u);
  EXPECT_EQ(b_.received.size(), 15u);
}

// Random sizes, random refusals, random progress of the fabric, both ways at once.
TEST_P(LinkTest, RandomTraffic) {
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    SetUp();
    ConnectBoth();
    fake_->MoveAtRandom(seed);
    std::mt19937 random(seed);
    const int frames = 300;
    struct Direction {
      Side* from;
      Side* to;
      std::vector<std::string> sent;
      std::optional<std::string> next;
    };
    Direction directions[] = {{&a_, &b_, {}, {}}, {&b_, &a_, {}, {}}};
    const auto busy = [&] {
      for (const Direction& d : directions) {
        if (d.sent.size() < frames || !d.from->link->Flushed() ||
            d.to->received.size() < d.sent.size()) {
          return true;
        }
      }
      return false;
    };
    int steps = 0;
    for (; busy() && steps < 2000000; ++steps) {
      Direction& d = directions[random() % 2];
      if (random() % 2 == 0 && d.sent.size() < frames) {
        if (!d.next.has_value()) {
          const size_t limits[] = {1, 200, 5000, d.from->link->max_payload() + 1};
          d.next = RandomBytes(random, random() % limits[random() % 4]);
        }
        const absl::StatusOr<bool> taken = d.from->Send(seed, d.sent.size(), *d.next);
        ASSERT_TRUE(taken.ok()) << taken.status();
        if (*taken) d.sent.push_back(*std::exchange(d.next, std::nullopt));
      } else {
        d.to->accept = random() % 4 != 0;
        ASSERT_TRUE(d.to->Poll().ok());
      }
    }
    ASSERT_FALSE(busy()) << "stuck with seed " << seed;
    for (const Direction& d : directions) {
      ASSERT_EQ(d.to->received.size(), d.sent.size());
      for (size_t i = 0; i < d.sent.size(); ++i) {
        ASSERT_EQ(d.to->received[i].second, d.sent[i]) << "seed " << seed << " frame " << i;
        ASSERT_EQ(d.to->received[i].first.offset, i);
        ASSERT_EQ(d.to->received[i].first.transfer, seed);
      }
    }
    EXPECT_EQ(fake_->receiver_not_ready(), 0u);
    TearDown();
  }
}

// Two threads that sleep on the descriptor whenever there is nothing to do: nothing is lost between
// Arm, the last look and the sleep. A missed wake-up shows as a wait that ends by its deadline.
TEST_P(LinkTest, WaitingOnTheDescriptor) {
  ConnectBoth();
  constexpr int kFrames = 3000;
  std::atomic<bool> slept_too_long = false;
  const auto run = [&](Side& side) {
    int sent = 0;
    uint64_t got = 0;
    const auto sink = [&](const FrameHeader& header, absl::Span<const std::byte>) {
      EXPECT_EQ(header.offset, got++);
      return true;
    };
    const std::string bytes(100, 'x');
    while (sent < kFrames || got < kFrames || !side.link->Flushed()) {
      absl::StatusOr<bool> moved = side.link->Poll(sink).moved;
      ASSERT_TRUE(moved.ok()) << moved.status();
      while (sent < kFrames && side.Send(0, sent, bytes).value()) {
        ++sent;
        *moved = true;
      }
      if (*moved) continue;
      const bool only_flushes = sent == kFrames && got == kFrames;
      ASSERT_TRUE(side.link->Arm(only_flushes ? Wake::kAll : Wake::kFrames).ok());
      moved = side.link->Poll(sink).moved;
      ASSERT_TRUE(moved.ok()) << moved.status();
      if (*moved) continue;
      if (!Sleeper(*side.link).Wakes(20000)) {
        slept_too_long = true;
        return;
      }
    }
  };
  std::thread other([&] { run(b_); });
  run(a_);
  other.join();
  EXPECT_FALSE(slept_too_long);
}

TEST_P(LinkTest, TheDescriptorIsQuietWhenThereIsNothing) {
  ConnectBoth();
  ASSERT_TRUE(b_.link->Arm(Wake::kAll).ok());
  PollUntilQuiet();
  const Sleeper sleeper(*b_.link);
  EXPECT_FALSE(sleeper.Wakes(0));
  ASSERT_TRUE(a_.Send(0, 0, "wake up").value());
  EXPECT_TRUE(sleeper.Wakes(0));
  ASSERT_TRUE(b_.Poll().ok());
  ASSERT_TRUE(b_.link->Arm(Wake::kAll).ok());
  EXPECT_FALSE(sleeper.Wakes(0));
}

TEST_P(LinkTest, WhoWaitsForFramesIsNotWokenByWhatItSent) {
  ConnectBoth();
  PollUntilQuiet();
  const auto stirred = [](Side& side) { return Sleeper(*side.link).Wakes(0); };
  ASSERT_TRUE(a_.link->Arm(Wake::kFrames).ok());
  ASSERT_TRUE(b_.link->Arm(Wake::kFrames).ok());
  ASSERT_TRUE(a_.Send(0, 0, "wake up").value());
  EXPECT_FALSE(stirred(a_));
  EXPECT_TRUE(stirred(b_));
  // That was one wait; the next may be for all.
  ASSERT_TRUE(a_.link->Arm(Wake::kAll).ok());
  PollUntilQuiet();
  ASSERT_TRUE(a_.link->Arm(Wake::kAll).ok());
  ASSERT_TRUE(a_.Send(0, 1, "again").value());
  EXPECT_TRUE(stirred(a_));
}

}  // namespace
}  // namespace railhead::transport::verbs
