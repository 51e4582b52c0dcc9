// SPDX-License-Identifier: Apache-2.0
//
// Transfers between two peers over several rails: every byte lands in its place, rails share the
// load, and wrong frames are errors.
#include "runtime/rails/peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/collectives/messenger.h"
#include "runtime/rails/peers_for_test.h"
#include "runtime/rails/unexpected_queue.h"
#include "runtime/testing/fake_link.h"
#include "runtime/transport/link.h"

namespace railhead::rails {
namespace {

using collectives::ReceiveBuffer;
using railhead::testing::FakeLink;
using ::testing::AllOf;
using ::testing::HasSubstr;

const reduce::Reduction kSum;

// Random transfers both ways over 1 to 4 rails that accept and deliver at random: every byte must
// land where it belongs.
TEST(PeerTest, RandomTransfersOverRandomRails) {
  std::mt19937 random(4);
  for (int round = 0; round < 60; ++round) {
    const size_t rails = 1 + random() % 4;
    PeerPair pair = MakePeers(rails, {size_t{4096} << random() % 5, size_t{4096} << random() % 5});
    for (FakeLink* link : pair.links_a) link->has_room = [&random] { return random() % 3 != 0; };
    for (FakeLink* link : pair.links_b) {
      link->has_room = [&random] { return random() % 2 != 0; };
      link->delivers = [&random] { return random() % 2 != 0; };
    }
    const size_t transfers = 1 + random() % 60;
    std::vector<std::string> sent[2];
    std::vector<std::string> got[2];
    for (auto* side : {&sent[0], &sent[1]}) {
      for (size_t t = 0; t < transfers; ++t) {
        const size_t size = random() % 5 == 0 ? 0 : random() % (random() % 2 == 0 ? 100 : 200000);
        side->push_back(Random(random, size));
      }
    }
    for (int side = 0; side < 2; ++side) {
      for (const std::string& text : sent[1 - side]) got[side].emplace_back(text.size(), '\0');
    }
    Peer* const peers[2] = {pair.a.get(), pair.b.get()};
    size_t posted_sends[2] = {0, 0};
    size_t posted_receives[2] = {0, 0};
    for (int step = 0; step < 200000; ++step) {
      bool done = true;
      for (int side = 0; side < 2; ++side) {
        if (posted_sends[side] < transfers && random() % 4 == 0) {
          const uint64_t ticket = peers[side]->PostSend(Bytes(sent[side][posted_sends[side]]));
          ASSERT_EQ(ticket, posted_sends[side]++);
        }
        if (posted_receives[side] < transfers && random() % 4 == 0) {
          const uint64_t ticket = peers[side]->PostReceive(Into(got[side][posted_receives[side]]));
          ASSERT_EQ(ticket, posted_receives[side]++);
        }
        const absl::StatusOr<bool> polled = peers[side]->Poll(kNow);
        ASSERT_TRUE(polled.ok()) << polled.status();
        done = done && posted_sends[side] == transfers && posted_receives[side] == transfers &&
               peers[side]->Idle();
      }
      if (done) break;
    }
    for (int side = 0; side < 2; ++side) {
      ASSERT_TRUE(peers[side]->Idle());
      for (size_t t = 0; t < transfers; ++t) {
        ASSERT_TRUE(peers[side]->ReceiveDone(t));
        ASSERT_TRUE(got[side][t] == sent[1 - side][t]) << "transfer " << t;
      }
    }
  }
}

TEST(PeerTest, ArrivingValuesAreAdded) {
  std::mt19937 random(5);
  PeerPair pair = MakePeers(3);
  for (FakeLink* link : pair.links_b) link->delivers = [&random] { return random() % 2 == 0; };
  const size_t count = 300007;
  std::vector<float> sent(count);
  std::vector<float> own(count);
  std::vector<float> sum(count);
  for (size_t i = 0; i < count; ++i) {
    sent[i] = static_cast<float>(i % 1013);
    own[i] = static_cast<float>(i % 777);
  }
  ReceiveBuffer buffer;
  buffer.data = reinterpret_cast<std::byte*>(sum.data());
  buffer.reduction = &kSum;
  buffer.operand = reinterpret_cast<const std::byte*>(own.data());
  buffer.size = count * sizeof(float);
  const uint64_t ticket = pair.b->PostReceive(buffer);
  pair.a->PostSend({reinterpret_cast<const std::byte*>(sent.data()), count * sizeof(float)});
  while (!pair.b->ReceiveDone(ticket)) {
    ASSERT_TRUE(pair.a->Poll(kNow).ok());
    ASSERT_TRUE(pair.b->Poll(kNow).ok());
  }
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(sum[i], sent[i] + own[i]) << i;
}

// Runs many transfers of one size and returns the bytes that each rail carried.
std::vector<double> CarriedBy(size_t rails, size_t transfer, size_t total,
                              const std::function<void(PeerPair&)>& arrange) {
  PeerPair pair = MakePeers(rails);
  arrange(pair);
  const std::string data(transfer, 'x');
  std::string into(transfer, '\0');
  for (size_t sent = 0; sent < total; sent += transfer) {
    const uint64_t ticket = pair.b->PostReceive(Into(into));
    pair.a->PostSend(Bytes(data));
    while (!pair.b->ReceiveDone(ticket)) {
      EXPECT_TRUE(pair.a->Poll(kNow).ok());
      EXPECT_TRUE(pair.b->Poll(kNow).ok());
    }
  }
  std::vector<double> shares;
  for (FakeLink* link : pair.links_a) {
    shares.push_back(static_cast<double>(link->stats().transmit_bytes));
  }
  return shares;
}

TEST(PeerTest, EqualRailsShareEvenlyAtEverySize) {
  for (const size_t transfer :
       {size_t{8}, size_t{1000}, size_t{20000}, size_t{100000}, size_t{524288}, size_t{3000000}}) {
    for (const size_t rails : {2, 3, 4}) {
      const std::vector<double> shares =
          CarriedBy(rails, transfer, std::max(transfer * 50, size_t{4} << 20), [](PeerPair&) {});
      const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
      EXPECT_LE(*most, *least * 1.10) << rails << " rails, transfers of " << transfer;
    }
  }
}

// Each answer tells of the frame before it, which spares a message.
TEST(PeerTest, AnswersTakeTheRailOfTheQuestion) {
  PeerPair pair = MakePeers(3);
  BeLazy(pair);
  const std::string bytes(8, 'x');
  std::string into(8, '\0');
  for (int i = 0; i < 100; ++i) {
    for (const auto& [from, to] :
         {std::pair(pair.a.get(), pair.b.get()), {pair.b.get(), pair.a.get()}}) {
      const uint64_t ticket = to->PostReceive(Into(into));
      from->PostSend(Bytes(bytes));
      while (!to->ReceiveDone(ticket)) {
        ASSERT_TRUE(from->Poll(kNow).ok());
        ASSERT_TRUE(to->Poll(kNow).ok());
      }
    }
    const auto owing = [](const std::vector<FakeLink*>& links) {
      return std::count_if(links.begin(), links.end(), [](FakeLink* link) { return link->owes(); });
    };
    ASSERT_EQ(owing(pair.links_a), 1);
    ASSERT_EQ(owing(pair.links_b), 0);
  }
}

TEST(PeerTest, EqualButJitteryRailsShareEvenly) {
  std::mt19937 random(6);
  const std::vector<double> shares = CarriedBy(2, 524288, size_t{64} << 20, [&](PeerPair& pair) {
    for (FakeLink* link : pair.links_a) link->has_room = [&random] { return random() % 3 == 0; };
  });
  EXPECT_LE(std::max(shares[0], shares[1]), std::min(shares[0], shares[1]) * 1.10);
}

TEST(PeerTest, ASlowRailTakesLessAndHoldsNobodyUp) {
  std::mt19937 random(7);
  const std::vector<double> shares = CarriedBy(2, 4 << 20, size_t{256} << 20, [&](PeerPair& pair) {
    pair.links_a[0]->has_room = [&random] { return random() % 20 == 0; };
  });
  EXPECT_GT(shares[1], shares[0] * 3);
  EXPECT_GT(shares[0], 0);
}

TEST(PeerTest, ABrokenRailNamesRailDeviceAndPeer) {
  PeerPair pair = MakePeers(2);
  // What the network does to a rail costs only the rail; this would come again.
  pair.links_a[1]->broken = absl::InternalError("the peer sent nonsense");
  const absl::Status status = pair.a->Poll(kNow).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("rail 1 (rxe1 port 1, verbs)"), HasSubstr("rank 1 (pod b)"),
                    HasSubstr("the peer sent nonsense")));
  EXPECT_TRUE(pair.a->rail_health(0).up);
  EXPECT_FALSE(pair.a->rail_health(1).up);
}

struct Hostile {
  transport::FrameHeader header;
  size_t size;
  const char* why;
};

class HostileFrameTest : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileFrameTest, IsAnErrorAndWritesNothing) {
  PeerPair pair = MakePeers(1);
  // Transfer 0 is complete, transfer 1 adds into 64 bytes of which [16, 32) are there already.
  std::string first(8, '\0');
  std::string guarded(64 + 64, '\0');
  const std::string addend(64, '\0');
  pair.b->PostReceive(Into(first));
  ReceiveBuffer buffer;
  buffer.data = Bytes(guarded).data() + 32;
  buffer.size = 64;
  buffer.operand = Bytes(addend).data();
  buffer.reduction = &kSum;
  pair.b->PostReceive(buffer);
  const std::string zeros(16, '\0');
  ASSERT_TRUE(*pair.links_a[0]->TrySend(Frame(0, 0, 8), Bytes(std::string(8, 'f'))));
  ASSERT_TRUE(*pair.links_a[0]->TrySend(Frame(1, 16, 64), Bytes(zeros)));
  ASSERT_TRUE(pair.b->Poll(kNow).ok());
  const std::string before = guarded;

  const std::string payload(GetParam().size, '\x41');
  ASSERT_TRUE(*pair.links_a[0]->TrySend(GetParam().header, Bytes(payload)));
  const absl::Status status = pair.b->Poll(kNow).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(GetParam().why), HasSubstr("rail 0 (rxe0"), HasSubstr("rank 0")));
  EXPECT_EQ(guarded, before);
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileFrameTest,
    ::testing::Values(
        Hostile{Frame(0, 0, 8), 8, "is complete"}, Hostile{Frame(0, 0, 9), 8, "same count"},
        Hostile{Frame(1, 60, 64), 8, "has 64 bytes"}, Hostile{Frame(1, 64, 64), 4, "has 64 bytes"},
        Hostile{Frame(1, 0, 64), 68, "has 64 bytes"}, Hostile{Frame(1, 0, 68), 68, "same count"},
        Hostile{Frame(1, 0, 32), 16, "same count"},
        Hostile{Frame(1, ~uint64_t{0}, 64), 8, "has 64 bytes"},
        Hostile{Frame(1, ~uint64_t{0} - 3, 64), 8, "has 64 bytes"},
        Hostile{Frame(1, 16, 64), 16, "already arrived"},
        Hostile{Frame(1, 28, 64), 8, "already arrived"},
        Hostile{Frame(1, 0, 64), 64, "already arrived"},
        Hostile{Frame(1, 2, 64), 4, "splits an element"},
        Hostile{Frame(1, 0, 64), 6, "splits an element"}, Hostile{Frame(1, 0, 64), 0, "empty"},
        Hostile{Frame(2, 0, kRoom), kRoom, "2 receives are posted"},
        Hostile{Frame(~uint64_t{0}, 0, 8), 8, "2 receives are posted"}));

// An idle rank that is asked gives a sign, by any rail that works; one whose process stands still
// gives none.
TEST(PeerTest, ARankThatIsAskedGivesASign) {
  PeerPair pair = MakeRecoveringPeers(2);
  absl::Time now = kNow;
  const auto turns = [&](bool others) {
    for (int i = 0; i < 5; ++i) {
      now += absl::Seconds(1);
      ASSERT_TRUE(pair.a->Poll(now).ok());
      if (!others) continue;
      ASSERT_TRUE(pair.b->Poll(now).ok());
      ASSERT_TRUE(pair.b->Acknowledge().ok());
    }
  };
  turns(true);
  EXPECT_EQ(pair.a->last_sign(), absl::InfinitePast());
  for (int round = 0; round < 4; ++round) {
    // Rail 0 is lost in the middle of it.
    if (round == 2) pair.links_a[0]->cable().Cut();
    absl::Time before = now;
    pair.a->AskForSign();
    turns(true);
    EXPECT_GT(pair.a->last_sign(), before) << round;
    EXPECT_TRUE(pair.a->Idle());
    // Nothing is asked twice.
    before = now;
    turns(true);
    EXPECT_LE(pair.a->last_sign(), before) << round;
  }
  const absl::Time before = now;
  for (int i = 0; i < 10; ++i) {
    pair.a->AskForSign();
    turns(false);
  }
  EXPECT_LE(pair.a->last_sign(), before);
}

TEST(PeerTest, AFrameThatComesTooEarlyWaits) {
  PeerPair pair = MakePeers(1);
  const std::string data = "early";
  pair.a->PostSend(Bytes(data));
  ASSERT_TRUE(pair.a->Poll(kNow).ok());
  ASSERT_TRUE(pair.b->Poll(kNow).ok());
  std::string into(5, '\0');
  EXPECT_TRUE(pair.b->ReceiveDone(pair.b->PostReceive(Into(into))));
  EXPECT_EQ(into, "early");
}

}  // namespace
}  // namespace railhead::rails
