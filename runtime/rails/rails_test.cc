// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/base/slot_queue.h"
#include "runtime/rails/chunk.h"
#include "runtime/rails/mesh.h"
#include "runtime/rails/peer.h"
#include "runtime/rails/range_set.h"
#include "runtime/rails/receive_ledger.h"
#include "runtime/rails/send_ledger.h"
#include "runtime/rails/unexpected_queue.h"
#include "runtime/testing/exchange.h"
#include "runtime/testing/fake_link.h"
#include "runtime/transport/wake_event.h"

namespace railhead::rails {
namespace {

const reduce::Reduction kSum;
// What depends on time has tests of its own (rail_scheduler_test.cc).
const absl::Time kNow = absl::UnixEpoch();

using collectives::ReceiveBuffer;
using railhead::testing::FakeLink;
using railhead::testing::FakePair;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Span<std::byte> Bytes(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}
absl::Span<const std::byte> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

ReceiveBuffer Into(std::string& text) {
  ReceiveBuffer buffer;
  buffer.data = Bytes(text).data();
  buffer.size = text.size();
  return buffer;
}

// A frame of a transfer of `size` bytes.
transport::FrameHeader Frame(uint64_t transfer, uint64_t offset, uint64_t size) {
  transport::FrameHeader header;
  header.transfer = transfer;
  header.offset = offset;
  header.size = size;
  return header;
}

std::string Random(std::mt19937& random, size_t size) {
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// ---- Small parts ----

TEST(RangeSetTest, AgreesWithABitmap) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    RangeSet set;
    std::vector<bool> bitmap(60);
    for (int step = 0; step < 60; ++step) {
      const size_t begin = random() % 60;
      const size_t end = std::min<size_t>(60, begin + random() % 9);
      const bool free = std::none_of(bitmap.begin() + static_cast<ptrdiff_t>(begin),
                                     bitmap.begin() + static_cast<ptrdiff_t>(end),
                                     [](bool taken) { return taken; });
      ASSERT_EQ(set.Add(begin, end), free) << begin << " to " << end;
      if (free)
        std::fill(bitmap.begin() + static_cast<ptrdiff_t>(begin),
                  bitmap.begin() + static_cast<ptrdiff_t>(end), true);
      ASSERT_EQ(set.total(), static_cast<uint64_t>(std::count(bitmap.begin(), bitmap.end(), true)));
    }
    set.Clear();
    EXPECT_EQ(set.total(), 0U);
    EXPECT_TRUE(set.Add(0, 60));
  }
}

TEST(RangeSetTest, BackwardRangesAreRefused) {
  RangeSet set;
  EXPECT_FALSE(set.Add(5, 4));
  EXPECT_EQ(set.total(), 0U);
}

TEST(SlotQueueTest, KeepsNumbersAndOrderWhileItGrows) {
  SlotQueue<uint64_t> queue;
  std::mt19937 random(2);
  uint64_t pushed = 0;
  for (int step = 0; step < 5000; ++step) {
    if (random() % 2 == 0 || queue.empty() || step < 200) {
      const uint64_t number = queue.Push();
      ASSERT_EQ(number, pushed);
      queue[number] = pushed++;
    } else {
      queue.Pop();
    }
    for (uint64_t n = queue.begin(); n < queue.end(); ++n) ASSERT_EQ(queue[n], n);
  }
}

TEST(ChunkTest, ChunksFitTheRailsAndGiveEachSeveral) {
  for (const size_t payload : {size_t{4096}, size_t{65536}, size_t{262144}}) {
    for (const size_t rails : {1, 2, 3, 8}) {
      for (size_t size = 1; size <= size_t{64} << 20; size = size * 3 / 2 + 1) {
        const size_t chunk = ChunkSize(size, rails, payload);
        ASSERT_GE(chunk, 1U);
        ASSERT_LE(chunk, payload);
        if (chunk < size) {
          ASSERT_EQ(chunk % 8, 0U) << "chunks must not cut through values";
        }
        if (size <= 16384 && payload >= 16384) {
          ASSERT_EQ(chunk, size);
        }
        if (size >= rails * (size_t{1} << 18)) {
          ASSERT_GE((size + chunk - 1) / chunk, rails * 4 - rails);
        }
      }
    }
  }
}

// ---- Peers ----

struct PeerPair {
  std::unique_ptr<Peer> a;
  std::unique_ptr<Peer> b;
  std::vector<FakeLink*> links_a;
  std::vector<FakeLink*> links_b;
};

PeerPair MakePeers(size_t rails, const std::vector<size_t>& payload_limits = {}) {
  PeerPair pair;
  std::vector<Rail> rails_a;
  std::vector<Rail> rails_b;
  for (size_t i = 0; i < rails; ++i) {
    auto [a, b] = FakePair();
    if (i < payload_limits.size()) a->payload_limit = b->payload_limit = payload_limits[i];
    pair.links_a.push_back(a.get());
    pair.links_b.push_back(b.get());
    const RailName name{static_cast<int>(i), absl::StrCat("rxe", i), 1, "verbs"};
    rails_a.push_back({name, std::move(a)});
    rails_b.push_back({name, std::move(b)});
  }
  pair.a = std::make_unique<Peer>("rank 1 (pod b)", std::move(rails_a));
  pair.b = std::make_unique<Peer>("rank 0 (pod a)", std::move(rails_b));
  return pair;
}

void BeLazy(PeerPair& pair) {
  for (const auto& links : {pair.links_a, pair.links_b}) {
    for (FakeLink* link : links) link->lazy = true;
  }
}

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

// ---- Mesh ----

std::unique_ptr<Mesh> MeshOf(std::unique_ptr<Peer> peer, Alarm alarm = {}, Reach reach = {}) {
  std::map<int, std::unique_ptr<Peer>> peers;
  peers[1] = std::move(peer);
  return *Mesh::Create(std::move(peers), alarm, std::move(reach));
}

TEST(MeshTest, WhatStandsStillFailsAndSaysWhatIsMissing) {
  PeerPair pair = MakePeers(2);
  const std::unique_ptr<Mesh> mesh = MeshOf(std::move(pair.a));
  std::string into(100, '\0');
  mesh->PostReceive(1, Into(into));
  ASSERT_TRUE(*pair.links_b[1]->TrySend(Frame(0, 0, 100), Bytes(std::string(40, 'x'))));
  mesh->Begin(absl::Milliseconds(50));
  ASSERT_TRUE(mesh->Progress().ok());  // the first 40 bytes
  const absl::Status status = mesh->Progress();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("50ms"), HasSubstr("rank 1 (pod b)"),
                    HasSubstr("received 40 of 100 bytes of transfer 0"), HasSubstr("rail 0 (rxe0"),
                    HasSubstr("rail 1 (rxe1")));
}

TEST(MeshTest, TheAlarmEndsAWait) {
  PeerPair pair = MakePeers(1);
  // With a link that never stirs, only the event can wake the mesh.
  pair.links_a[0]->wakes = true;
  const auto wake = std::make_shared<transport::WakeEvent>();
  std::atomic<bool> raised{false};
  const std::unique_ptr<Mesh> mesh = MeshOf(std::move(pair.a), {&raised}, {nullptr, wake, nullptr});
  mesh->Begin(absl::Seconds(100));
  std::thread other([&] {
    absl::SleepFor(absl::Milliseconds(20));
    raised = true;
    wake->Signal();
  });
  EXPECT_EQ(mesh->Progress().code(), absl::StatusCode::kCancelled);
  other.join();
}

TEST(MeshTest, TotalsAddUpOverPeers) {
  PeerPair first = MakePeers(2);
  PeerPair second = MakePeers(2);
  FakeLink* const rail_1_of_second = second.links_a[1];
  const std::string data(1000, 'x');
  ASSERT_TRUE(*first.links_a[1]->TrySend({0, 0}, Bytes(data)));
  ASSERT_TRUE(*rail_1_of_second->TrySend({0, 0}, Bytes(data)));
  std::map<int, std::unique_ptr<Peer>> peers;
  peers[1] = std::move(first.a);
  peers[2] = std::move(second.a);
  const std::unique_ptr<Mesh> mesh = *Mesh::Create(std::move(peers), {});
  rail_1_of_second->broken = absl::InternalError("gone");
  EXPECT_FALSE(mesh->Progress().ok());
  const std::vector<RailTotals> totals = mesh->Totals();
  ASSERT_EQ(totals.size(), 2U);
  EXPECT_EQ(totals[0].transmit_bytes, 0U);
  EXPECT_TRUE(totals[0].up);
  EXPECT_EQ(totals[1].transmit_bytes, 2000U);
  EXPECT_FALSE(totals[1].up);
  // One peer is not reached by it, the other one is: it is not this side's NIC.
  EXPECT_EQ(totals[1].peers, 2);
  EXPECT_EQ(totals[1].lost_peers, 1);
  EXPECT_EQ(totals[0].lost_peers, 0);
  EXPECT_EQ(totals[1].name.device, "rxe1");
}

// ---- Rails that are lost ----

PeerPair MakeRecoveringPeers(size_t rails, LogLevel level = LogLevel::kError) {
  PeerPair pair;
  std::vector<Rail> rails_a;
  std::vector<Rail> rails_b;
  for (size_t i = 0; i < rails; ++i) {
    auto [a, b] = FakePair();
    pair.links_a.push_back(a.get());
    pair.links_b.push_back(b.get());
    const RailName name{static_cast<int>(i), absl::StrCat("eth", i), 0, "tcp"};
    rails_a.push_back({name, std::move(a)});
    rails_b.push_back({name, std::move(b)});
  }
  const Logger log(level, "");
  pair.a = std::make_unique<Peer>("rank 1 (pod b)", std::move(rails_a), log);
  pair.b = std::make_unique<Peer>("rank 0 (pod a)", std::move(rails_b), log);
  return pair;
}

// Cables are cut and plugged in again at random, sides notice it late and at different times, and
// acknowledgements are lost: every sum must still be right, and everything must end.
TEST(FailoverTest, RandomLossesAndReturnsChangeNoResult) {
  int kept = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const size_t rails = 1 + random() % 4;
    PeerPair pair = MakeRecoveringPeers(rails);
    for (auto* links : {&pair.links_a, &pair.links_b}) {
      for (FakeLink* link : *links) {
        link->has_room = [&random] { return random() % 3 != 0; };
        link->delivers = [&random] { return random() % 2 != 0; };
        link->hears = [&random] { return random() % 4 == 0; };
        link->notices = [&random] { return random() % 16 == 0; };
        link->places = [&random] { return random() % 2 == 0; };
      }
    }
    railhead::testing::Exchange exchange(random, *pair.a, *pair.b, 1 + random() % 80);
    const uint32_t calm = 50 + random() % 400;  // steps between misfortunes
    const size_t ahead = 1 + random() % 16;
    int step = 0;
    absl::Time now = kNow;
    while (!exchange.Done()) {
      ASSERT_LT(++step, 2000000) << "seed " << seed << ": " << pair.a->DescribeProgress() << "\n"
                                 << pair.b->DescribeProgress();
      if (random() % calm == 0) {
        FakeLink* const link = pair.links_a[random() % rails];
        if (link->cable().plugged) {
          link->cable().Cut();
        } else {
          link->cable().plugged = true;
        }
      }
      // A cable without which nothing goes on comes back some day.
      if (random() % (4 * calm) == 0) pair.links_a[random() % rails]->cable().plugged = true;
      for (const int side : {0, 1}) {
        exchange.Step(side, ahead, random() % 8 == 0);
        now += absl::Microseconds(random() % 50);
        const auto& peer = side == 0 ? pair.a : pair.b;
        if (random() % 4 == 0) kept += peer->KeepUnacknowledged() ? 1 : 0;
        const absl::StatusOr<bool> polled = peer->Poll(now);
        ASSERT_TRUE(polled.ok()) << "seed " << seed << ": " << polled.status();
      }
    }
    ASSERT_EQ(exchange.Wrong(), 0U) << "seed " << seed;
  }
  EXPECT_GT(kept, 300);
}

// The last rail carries everything, and rails that come back carry something again.
TEST(FailoverTest, OneOfFourRailsIsEnough) {
  PeerPair pair = MakeRecoveringPeers(4);
  const auto transfer = [&] {
    const std::string data(1 << 20, 'x');
    std::string into(data.size(), '\0');
    const uint64_t ticket = pair.b->PostReceive(Into(into));
    const uint64_t send = pair.a->PostSend(Bytes(data));
    for (int i = 0; i < 10000 && !(pair.b->ReceiveDone(ticket) && pair.a->SendDone(send)); ++i) {
      ASSERT_TRUE(pair.a->Poll(kNow).ok());
      ASSERT_TRUE(pair.b->Poll(kNow).ok());
    }
    EXPECT_TRUE(into == data);
    EXPECT_TRUE(pair.a->SendDone(send));
  };
  transfer();
  for (const size_t i : {0, 1, 3}) pair.links_a[i]->cable().Cut();
  const uint64_t before = pair.links_a[2]->stats().transmit_bytes;
  transfer();
  EXPECT_EQ(pair.links_a[2]->stats().transmit_bytes - before, 1U << 20);
  for (const size_t i : {0, 1, 3}) {
    EXPECT_FALSE(pair.a->rail_health(i).up);
    EXPECT_EQ(pair.a->rail_health(i).failovers, 1U);
    pair.links_a[i]->cable().plugged = true;
  }
  const uint64_t lost = pair.links_a[1]->stats().transmit_bytes;
  transfer();
  transfer();
  EXPECT_GT(pair.links_a[1]->stats().transmit_bytes, lost);
  EXPECT_TRUE(pair.a->rail_health(1).up);
  EXPECT_EQ(pair.a->rail_health(1).returns, 1U);
  EXPECT_EQ(pair.a->rail_health(2).failovers, 0U);
}

// A rail that the ranks have left for another still owes what was last taken on it; nobody may have
// to sleep until that is told.
TEST(FailoverTest, SmallMessagesNeverWaitForWhatAnotherRailOwes) {
  for (const size_t rails : {2, 4}) {
    PeerPair pair = MakeRecoveringPeers(rails);
    BeLazy(pair);
    const std::string bytes(1024, 'x');
    std::string into(1024, '\0');
    for (int i = 0; i < 3000; ++i) {
      for (const auto& [from, to] :
           {std::pair(pair.a.get(), pair.b.get()), {pair.b.get(), pair.a.get()}}) {
        const uint64_t ticket = to->PostReceive(Into(into));
        from->PostSend(Bytes(bytes));
        for (int looks = 0; !to->ReceiveDone(ticket); ++looks) {
          ASSERT_LT(looks, 10) << "exchange " << i << " over " << rails << " rails";
          ASSERT_TRUE(from->Poll(kNow).ok());
          ASSERT_TRUE(to->Poll(kNow).ok());
        }
      }
    }
    for (FakeLink* link : pair.links_a) EXPECT_GT(link->stats().transmit_bytes, 0U);
  }
}

// A large transfer's memory is the caller's again only when the peer has it all.
TEST(FailoverTest, LargeTransfersAreDoneWhenAcknowledgedAndSmallOnesBefore) {
  PeerPair pair = MakeRecoveringPeers(1);
  pair.links_a[0]->hears = [] { return false; };
  const std::string small(100, 's');
  const std::string large(100000, 'l');
  std::string into_small(small.size(), '\0');
  std::string into_large(large.size(), '\0');
  pair.b->PostReceive(Into(into_small));
  pair.b->PostReceive(Into(into_large));
  const uint64_t first = pair.a->PostSend(Bytes(small));
  const uint64_t second = pair.a->PostSend(Bytes(large));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(pair.a->Poll(kNow).ok());
    ASSERT_TRUE(pair.b->Poll(kNow).ok());
  }
  EXPECT_TRUE(pair.b->ReceiveDone(1));
  EXPECT_TRUE(pair.a->SendDone(first));
  EXPECT_FALSE(pair.a->SendDone(second));
  EXPECT_FALSE(pair.a->Acknowledged());
  pair.links_a[0]->hears = [] { return true; };
  ASSERT_TRUE(*pair.a->Poll(kNow));
  EXPECT_TRUE(pair.a->SendDone(second));
  EXPECT_TRUE(pair.a->Acknowledged());
}

// Whoever has nothing else to wait for keeps a copy of what the peer may not have, and goes on.
TEST(FailoverTest, TheLastBytesOfALargeTransferAreCopiedRatherThanWaitedFor) {
  PeerPair pair = MakeRecoveringPeers(2);
  for (FakeLink* link : pair.links_b) link->delivers = [] { return false; };
  for (FakeLink* link : pair.links_a) {
    link->hears = [] { return false; };
    link->notices = [] { return false; };
  }
  const auto poll_both = [&pair] {
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(pair.a->Poll(kNow).ok());
      ASSERT_TRUE(pair.b->Poll(kNow).ok());
    }
  };
  std::string data(kMaxTail, 'd');
  std::string longer(kMaxTail + 1, 'l');
  std::string into(data.size(), '\0');
  const uint64_t send = pair.a->PostSend(Bytes(data));
  pair.b->PostReceive(Into(into));
  EXPECT_FALSE(pair.a->KeepUnacknowledged()) << "no rail has it yet";
  ASSERT_TRUE(pair.a->Poll(kNow).ok());
  EXPECT_FALSE(pair.a->KeepUnacknowledged()) << "it is still on its way";
  // One rail loses its part, and the other brings its own, but A knows of neither.
  pair.links_a[0]->cable().Cut();
  pair.links_b[1]->delivers = [] { return true; };
  ASSERT_TRUE(pair.b->Poll(kNow).ok());
  EXPECT_FALSE(pair.a->SendDone(send));
  EXPECT_TRUE(pair.a->KeepUnacknowledged());
  EXPECT_FALSE(pair.a->KeepUnacknowledged()) << "it is done";
  EXPECT_TRUE(pair.a->SendDone(send));
  EXPECT_FALSE(pair.a->Acknowledged());
  std::fill(data.begin(), data.end(), '!');
  for (FakeLink* link : pair.links_a) {
    link->hears = [] { return true; };
    link->notices = [] { return true; };
  }
  ASSERT_NO_FATAL_FAILURE(poll_both());
  EXPECT_TRUE(into == std::string(kMaxTail, 'd')) << "repeated as it was";
  EXPECT_TRUE(pair.a->Acknowledged());
  // What no CPU may read is waited for, and more than that much.
  pair.links_a[1]->hears = [] { return false; };
  pair.a->CopySmall(false);
  const uint64_t unread = pair.a->PostSend(Bytes(data));
  pair.a->CopySmall(true);
  pair.b->PostReceive(Into(into));
  ASSERT_NO_FATAL_FAILURE(poll_both());
  EXPECT_TRUE(into == data);
  EXPECT_FALSE(pair.a->KeepUnacknowledged());
  EXPECT_FALSE(pair.a->SendDone(unread));
  pair.links_a[1]->hears = [] { return true; };
  ASSERT_TRUE(pair.a->Poll(kNow).ok());
  pair.links_a[1]->hears = [] { return false; };
  const uint64_t second = pair.a->PostSend(Bytes(longer));
  std::string into_longer(longer.size(), '\0');
  pair.b->PostReceive(Into(into_longer));
  ASSERT_NO_FATAL_FAILURE(poll_both());
  EXPECT_TRUE(into_longer == longer);
  EXPECT_FALSE(pair.a->KeepUnacknowledged());
  EXPECT_FALSE(pair.a->SendDone(second));
}

// A lost small message must get past later ones that its receiver has not asked for yet.
TEST(FailoverTest, ARepeatOvertakesWhatNobodyHasAskedForYet) {
  PeerPair pair = MakeRecoveringPeers(2);
  pair.links_a[1]->has_room = [] { return false; };
  pair.links_b[0]->delivers = [] { return false; };
  const std::string lost = "lost";
  pair.a->PostSend(Bytes(lost));
  ASSERT_TRUE(pair.a->Poll(kNow).ok());
  ASSERT_TRUE(pair.a->SendDone(0));
  // It stands in rail 0; what comes after it takes rail 1.
  pair.links_a[0]->has_room = [] { return false; };
  pair.links_a[1]->has_room = [] { return true; };
  const std::string later(4 << 20, 'l');
  pair.a->PostSend(Bytes(later));
  ASSERT_TRUE(pair.a->Poll(kNow).ok());
  EXPECT_GT(pair.links_a[1]->stats().transmit_bytes, 100000U);
  EXPECT_LE(pair.links_a[1]->stats().transmit_bytes, kRoom) << "as far as B has room";
  pair.links_a[0]->cable().Cut();
  std::string into(lost.size(), '\0');
  pair.b->PostReceive(Into(into));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(pair.a->Poll(kNow).ok());
    ASSERT_TRUE(pair.b->Poll(kNow).ok());
  }
  EXPECT_EQ(into, lost);
  std::string into_later(later.size(), '\0');
  pair.b->PostReceive(Into(into_later));
  for (int i = 0; i < 1000 && !pair.b->Idle(); ++i) {
    ASSERT_TRUE(pair.a->Poll(kNow).ok());
    ASSERT_TRUE(pair.b->Poll(kNow).ok());
  }
  EXPECT_TRUE(into_later == later);
}

// Also where the network does not show it: the next chunk there would have to be missed first.
TEST(FailoverTest, ARailThatThePeerHasLostIsGivenUp) {
  PeerPair pair = MakeRecoveringPeers(2);
  pair.links_b[0]->notices = [] { return false; };
  pair.links_a[0]->cable().Cut();
  const std::string data = "over the other rail";
  const auto transfer = [&](absl::Time now) {
    std::string into(data.size(), '\0');
    pair.b->PostReceive(Into(into));
    pair.a->PostSend(Bytes(data));
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(pair.a->Poll(now).ok());
      ASSERT_TRUE(pair.b->Poll(now).ok());
    }
    EXPECT_EQ(into, data);
  };
  transfer(kNow);
  EXPECT_FALSE(pair.a->rail_health(0).up);
  EXPECT_FALSE(pair.b->rail_health(0).up);
  EXPECT_EQ(pair.b->rail_health(0).failovers, 1U);
  EXPECT_EQ(pair.b->rail_health(1).failovers, 0U);

  pair.links_a[0]->cable().plugged = true;
  transfer(kNow + absl::Seconds(2));
  EXPECT_TRUE(pair.a->rail_health(0).up);
  EXPECT_TRUE(pair.b->rail_health(0).up);
  EXPECT_EQ(pair.b->rail_health(0).failovers, 1U);
}

TEST(FailoverTest, APeerThatMayLeaveIsNotLoggedAsLost) {
  for (const bool may_leave : {false, true}) {
    PeerPair pair = MakeRecoveringPeers(1, LogLevel::kWarn);
    if (may_leave) pair.a->ExpectClose();
    pair.links_a[0]->cable().Cut();
    ::testing::internal::CaptureStderr();
    ASSERT_TRUE(pair.a->Poll(kNow).ok());
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_FALSE(pair.a->rail_health(0).up);
    EXPECT_EQ(log.find("lost (the cable was cut)") == std::string::npos, may_leave) << log;
  }
}

TEST(FailoverTest, NonsenseIsNotRepeated) {
  PeerPair pair = MakeRecoveringPeers(2);
  pair.links_a[1]->broken = absl::InternalError("the stream contains data that is not a frame");
  EXPECT_EQ(pair.a->Poll(kNow).status().code(), absl::StatusCode::kInternal);
}

TEST(FailoverTest, WithoutAnyRailAMeshWaitsUntilItsPatienceEndsAndSaysWhy) {
  PeerPair pair = MakeRecoveringPeers(2);
  const std::vector<FakeLink*> links = pair.links_a;
  const std::unique_ptr<Mesh> mesh = [&] {
    std::map<int, std::unique_ptr<Peer>> peers;
    peers[1] = std::move(pair.a);
    return *Mesh::Create(std::move(peers), {});
  }();
  const std::string data(100000, 'x');
  mesh->PostSend(1, Bytes(data));
  for (FakeLink* link : links) link->cable().Cut();
  mesh->Begin(absl::Milliseconds(50));
  absl::Status status;
  while (status.ok()) status = mesh->Progress();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("rank 1 (pod b)"), HasSubstr("rail 0 (eth0, tcp)"),
                    HasSubstr("is lost (the cable was cut)")));
  const std::vector<RailTotals> totals = mesh->Totals();
  EXPECT_FALSE(totals[1].up);
  EXPECT_EQ(totals[1].failovers, 1U);
  mesh->Settle(MonotonicNow() + absl::Milliseconds(20));  // ends, although nothing can arrive
}

// What the ranks tell each other of a rail that is lost again and again brings no transfer nearer.
TEST(FailoverTest, ARailThatComesAndGoesDoesNotHideThatNothingMoves) {
  PeerPair pair = MakeRecoveringPeers(2);
  railhead::testing::FakeCable& cable = pair.links_a[0]->cable();
  const std::unique_ptr<Mesh> mesh = MeshOf(std::move(pair.a));
  std::string into(100, '\0');
  mesh->PostReceive(1, Into(into));
  mesh->Begin(absl::Milliseconds(50));
  absl::Status status;
  const absl::Time end = MonotonicNow() + absl::Seconds(20);
  while (status.ok() && MonotonicNow() < end) {
    cable.Cut();
    ASSERT_TRUE(pair.b->Poll(kNow).ok());
    status = mesh->Progress();
    cable.plugged = true;
    ASSERT_TRUE(pair.b->Poll(kNow).ok());
    if (status.ok()) status = mesh->Progress();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

// Receives at b what the owner of `mesh` has sent, while only the tender works for that owner.
void ReceiveFromAnAbsentOwner(Mesh& mesh, PeerPair& pair, std::string& into) {
  const uint64_t ticket = pair.b->PostReceive(Into(into));
  for (int i = 0; i < 100 && !pair.b->ReceiveDone(ticket); ++i) {
    mesh.Tend(kNow);
    ASSERT_TRUE(pair.b->Poll(kNow).ok());
  }
}

// Whoever only sends, and then computes for long, must not lose what a dying rail had taken.
TEST(FailoverTest, WhatALostRailHadIsRepeatedWhileItsOwnerIsAway) {
  PeerPair pair = MakeRecoveringPeers(2);
  BeLazy(pair);
  FakeLink* const used = pair.links_a[0];
  const std::unique_ptr<Mesh> mesh = MeshOf(std::move(pair.a));
  const std::string data(1000, 'd');
  std::string into(data.size(), '\0');
  mesh->Begin(absl::Seconds(20));
  mesh->PostSend(1, Bytes(data));
  mesh->Tend(kNow);  // which is nothing while its owner is there
  ASSERT_TRUE(mesh->Finish().ok());
  ASSERT_EQ(used->stats().transmit_bytes, data.size());
  used->cable().Cut();
  ReceiveFromAnAbsentOwner(*mesh, pair, into);
  EXPECT_EQ(into, data);
  mesh->Begin(absl::Seconds(20));
  EXPECT_TRUE(mesh->Finish().ok());
}

// As at the end of a call whose data lay in the memory of a GPU.
TEST(FailoverTest, CopyingCanBeTurnedOnWhileTheOwnerIsAway) {
  PeerPair pair = MakeRecoveringPeers(2);
  BeLazy(pair);
  FakeLink* const used = pair.links_a[0];
  const std::unique_ptr<Mesh> mesh = MeshOf(std::move(pair.a));
  const std::string data(1000, 'd');
  std::string into(data.size(), '\0');
  mesh->Begin(absl::Seconds(20));
  mesh->PostSend(1, Bytes(data));
  ASSERT_TRUE(mesh->Finish().ok());
  mesh->CopySmall(false);
  mesh->CopySmall(true);
  used->cable().Cut();
  ReceiveFromAnAbsentOwner(*mesh, pair, into);
  EXPECT_EQ(into, data) << "repeated over the other rail";
}

TEST(ReachTest, AMeshMakesAPeerWhenItHasSomethingForIt) {
  PeerPair pair = MakeRecoveringPeers(1);
  Reach reach;
  reach.open = [&](int rank) -> absl::StatusOr<std::unique_ptr<Peer>> {
    if (rank == 1) return std::move(pair.a);
    return absl::UnavailableError(absl::StrCat("no connection to rank ", rank));
  };
  const std::unique_ptr<Mesh> mesh = *Mesh::Create({}, {}, std::move(reach));
  mesh->Begin(absl::Seconds(20));
  const std::string data = "data";
  std::string into(data.size(), '\0');
  pair.b->PostReceive(Into(into));
  const Mesh::Ticket ticket = mesh->PostSend(1, Bytes(data));
  while (!pair.b->ReceiveDone(0) || !mesh->SendDone(1, ticket)) {
    ASSERT_TRUE(pair.b->Poll(kNow).ok());
    if (!mesh->SendDone(1, ticket)) {
      ASSERT_TRUE(mesh->Progress().ok());
    }
  }
  EXPECT_EQ(into, data);
  EXPECT_EQ(mesh->Totals().size(), 1U);

  const Mesh::Ticket never = mesh->PostSend(2, Bytes(data));
  EXPECT_FALSE(mesh->SendDone(2, never));
  EXPECT_EQ(mesh->Progress().message(), "no connection to rank 2");
}

TEST(UnexpectedQueueTest, KeepsWhatFitsOnceAndGivesItBackInOrder) {
  UnexpectedQueue queue;
  const std::string text(1000, 't');
  std::string out;
  const auto append = [&](const transport::FrameHeader&, absl::Span<const std::byte> payload) {
    out.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  };
  for (int round = 0; round < 3; ++round) {
    const auto next = static_cast<uint64_t>(4 * round);
    EXPECT_TRUE(queue.Put(Frame(next + 1, 0, 1004), Bytes(text)));
    EXPECT_TRUE(queue.Put(Frame(next + 2, 0, 3), Bytes(std::string("two"))));
    EXPECT_TRUE(queue.Put(Frame(next + 1, 1000, 1004), Bytes(std::string("more"))));
    const size_t used = queue.used();
    EXPECT_TRUE(queue.Put(Frame(next + 1, 0, 1004), Bytes(text))) << "it is there already";
    EXPECT_EQ(queue.used(), used);
    EXPECT_FALSE(queue.Put(Frame(next + 3, 0, kRoom), Bytes(std::string(kRoom - used, 'x'))));
    queue.TakeNext(append);
    EXPECT_EQ(out, "");
    queue.TakeNext(append);
    EXPECT_EQ(out, text + "more");
    queue.TakeNext(append);
    EXPECT_EQ(std::exchange(out, ""), text + "moretwo");
    EXPECT_EQ(queue.used(), 0U);
    queue.TakeNext(append);
  }
  EXPECT_FALSE(queue.Put(Frame(11, 0, 1), Bytes(std::string("x")))) << "posted long ago";
  EXPECT_FALSE(queue.Put(Frame(13 + kMaxTransfersAhead, 0, 1), Bytes(std::string("x"))));
}

}  // namespace
}  // namespace railhead::rails
