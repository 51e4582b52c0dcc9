// SPDX-License-Identifier: Apache-2.0
//
// Rails that are lost and return: the others carry what was under way, nothing is lost or added
// twice, and a mesh without rails gives up in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/log.h"
#include "runtime/base/now.h"
#include "runtime/collectives/registered_memory.h"
#include "runtime/rails/mesh.h"
#include "runtime/rails/peer.h"
#include "runtime/rails/peers_for_test.h"
#include "runtime/rails/send_ledger.h"
#include "runtime/rails/unexpected_queue.h"
#include "runtime/testing/exchange.h"
#include "runtime/testing/fake_link.h"

namespace railhead::rails {
namespace {

using railhead::testing::FakeLink;
using ::testing::AllOf;
using ::testing::HasSubstr;

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
        // A rail that is lost again and again waits for up to a minute.
        now += absl::Milliseconds(random() % 20);
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

// Memory that the peer's NICs write.
class WrittenMemory final : public collectives::RegisteredMemory {
 public:
  uint64_t number() const override { return 1; }
  const collectives::RemoteMemory& remote() const override { return remote_; }
  bool on_device() const override { return false; }
  absl::Status Write(std::byte* /*to*/, absl::Span<const std::byte> /*from*/) const override {
    return absl::OkStatus();
  }

 private:
  const collectives::RemoteMemory remote_;
};

// Its packets could be on their way, and arrive when the receive is done.
TEST(FailoverTest, ARepeatEndsTheConnectionThatHadItsBytes) {
  const WrittenMemory memory;
  for (const bool placed : {false, true}) {
    PeerPair pair = MakeRecoveringPeers(3);
    std::string text(100, '-');
    collectives::ReceiveBuffer buffer = Into(text);
    buffer.registered = &memory;
    pair.b->PostReceive(buffer);
    ASSERT_TRUE(pair.b->Poll(kNow).ok());
    transport::FrameHeader header = Frame(0, 0, 100);
    header.repeated = true;
    header.lost_rails = placed ? transport::LostRailBit(0) : 0;
    const std::string sent(100, 'x');
    ASSERT_TRUE(*pair.links_a[1]->TrySend(header, Bytes(sent)));
    ASSERT_TRUE(pair.b->Poll(kNow).ok());
    EXPECT_EQ(text, sent);
    EXPECT_EQ(pair.b->rail_health(0).up, !placed);
    EXPECT_TRUE(pair.b->rail_health(1).up);
    EXPECT_TRUE(pair.b->rail_health(2).up);
  }
}

TEST(FailoverTest, BytesInMemoryThatIsNotRegisteredAreRefused) {
  PeerPair pair = MakeRecoveringPeers(1);
  std::string text(100, '-');
  pair.b->PostReceive(Into(text));
  transport::FrameHeader header = Frame(0, 0, 100);
  header.placed = true;
  ASSERT_TRUE(*pair.links_a[0]->TrySend(header, Bytes(text)));
  EXPECT_THAT(std::string(pair.b->Poll(kNow).status().message()),
              HasSubstr("memory that is not registered for that"));
}

TEST(FailoverTest, APeerThatMayLeaveIsNeitherLoggedNorCountedAsLost) {
  for (const bool may_leave : {false, true}) {
    PeerPair pair = MakeRecoveringPeers(1, LogLevel::kWarn);
    if (may_leave) pair.a->ExpectClose();
    pair.links_a[0]->cable().Cut();
    ::testing::internal::CaptureStderr();
    ASSERT_TRUE(pair.a->Poll(kNow).ok());
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_FALSE(pair.a->rail_health(0).up);
    EXPECT_EQ(pair.a->rail_health(0).failovers, may_leave ? 0U : 1U);
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

// The acknowledgements of what this side took are lost with a rail, as if the network had dropped
// them: the peer notices and repeats over another rail, and this side's owner is elsewhere.
TEST(FailoverTest, WhatALostRailHadAcknowledgedIsAcknowledgedAgainWhileItsOwnerIsAway) {
  PeerPair pair = MakeRecoveringPeers(2);
  BeLazy(pair);
  const std::string data(128 << 10, 'd');
  std::string into(data.size(), '\0');
  const uint64_t send = pair.b->PostSend(Bytes(data));
  for (FakeLink* link : pair.links_b) link->hears = [] { return false; };
  // It sees no end of the connection either.
  for (FakeLink* link : pair.links_a) link->notices = [] { return false; };
  FakeLink* const lost = pair.links_b[0];
  const std::unique_ptr<Mesh> mesh = MeshOf(std::move(pair.a));
  mesh->Begin(absl::Seconds(20));
  const uint64_t receive = mesh->PostReceive(1, Into(into));
  for (int i = 0; i < 100 && !mesh->ReceiveDone(1, receive); ++i) {
    ASSERT_TRUE(pair.b->Poll(kNow).ok());
    ASSERT_TRUE(mesh->Progress().ok());
  }
  ASSERT_TRUE(mesh->Finish().ok());
  ASSERT_EQ(into, data);
  ASSERT_FALSE(pair.b->SendDone(send));
  lost->cable().Cut();
  for (FakeLink* link : pair.links_b) link->hears = [] { return true; };
  for (int i = 0; i < 100 && !pair.b->SendDone(send); ++i) {
    ASSERT_TRUE(pair.b->Poll(kNow).ok());
    mesh->Tend(kNow);
  }
  EXPECT_TRUE(pair.b->SendDone(send));
}

// One rank of a random history: its mesh, and whether its owner is in a call. A call posts messages
// and ends when all are done; then only the tender works.
struct Side {
  std::unique_ptr<Mesh> mesh;
  std::vector<FakeLink*> links;
  std::deque<std::string> sent;      // keep their addresses
  std::deque<std::string> received;  // the same
  std::vector<uint64_t> sends;
  std::vector<uint64_t> receives;
  bool away = false;

  bool Done() const {
    return std::all_of(sends.begin(), sends.end(),
                       [this](uint64_t t) { return mesh->SendDone(1, t); }) &&
           std::all_of(receives.begin(), receives.end(),
                       [this](uint64_t t) { return mesh->ReceiveDone(1, t); });
  }
  void Call() {
    away = false;
    mesh->Begin(absl::ZeroDuration());
  }
  absl::Status Work() {
    if (away) {
      mesh->Tend(MonotonicNow());
      return absl::OkStatus();
    }
    Call();
    absl::Status progress = mesh->Progress();
    if (Done()) {
      progress = mesh->Finish();
      away = progress.ok();
    }
    return absl::IsDeadlineExceeded(progress) ? absl::OkStatus() : progress;
  }
};

// {who is away} x {what is lost} x {which messages}: whatever a rank owes, its owner need not be
// there. Each rank has what it was sent, and its memory back, as long as one rail works.
TEST(FailoverTest, NothingIsOwedByAnOwnerThatIsAway) {
  const std::array<size_t, 6> sizes = {
      1, 1000, kCopied + 1, kMaxTail + 1, size_t{300} << 10, size_t{2} << 20};
  int one_away = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto draw = [&random](size_t below) { return random() % below; };
    const size_t rails = 2 + draw(2);
    PeerPair pair = MakeRecoveringPeers(rails);
    if (draw(2) == 0) BeLazy(pair);
    std::array<Side, 2> sides;
    sides[0].links = pair.links_a;
    sides[1].links = pair.links_b;
    sides[0].mesh = MeshOf(std::move(pair.a));
    sides[1].mesh = MeshOf(std::move(pair.b));
    const auto message = [&](Side& sender, Side& receiver) {
      const size_t size = sizes[draw(sizes.size())];
      sender.Call();
      receiver.Call();
      sender.sent.push_back(Random(random, size));
      receiver.received.emplace_back(size, '\0');
      sender.sends.push_back(sender.mesh->PostSend(1, Bytes(std::as_const(sender.sent.back()))));
      receiver.receives.push_back(receiver.mesh->PostReceive(1, Into(receiver.received.back())));
    };
    // The last rail works all the time.
    const auto trouble = [&] {
      const size_t at = draw(2);
      FakeLink* const link = sides[at].links[draw(rails - 1)];
      const bool works = draw(2) == 0;
      switch (draw(6)) {
        case 0:
          link->cable().Cut();
          break;
        case 1:
          link->cable().plugged = true;
          break;
        case 2:
          link->hears = [works] { return works; };
          break;
        case 3:
          link->delivers = [works] { return works; };
          break;
        case 4:
          link->notices = [works] { return works; };
          break;
        default:
          message(sides[at], sides[1 - at]);
      }
    };
    const auto work = [&] {
      one_away += sides[0].away != sides[1].away ? 1 : 0;
      for (Side& side : sides) {
        const absl::Status status = side.Work();
        ASSERT_TRUE(status.ok()) << status;
      }
    };
    for (int step = 0; step < 30; ++step) {
      trouble();
      ASSERT_NO_FATAL_FAILURE(work());
    }
    // What a rail swallowed is lost once a link gives it up, as links do in time: on one side later
    // than on the other.
    const size_t first = draw(2);
    for (size_t rail = 0; rail + 1 < rails; ++rail) {
      sides[0].links[rail]->cable().Cut();
      for (Side& side : sides) {
        side.links[rail]->hears = side.links[rail]->delivers = [] { return true; };
      }
      sides[first].links[rail]->notices = [] { return true; };
    }
    for (int step = 0; step < 200 && !(sides[0].Done() && sides[1].Done()); ++step) {
      ASSERT_NO_FATAL_FAILURE(work());
      if (step < 100) continue;
      for (FakeLink* link : sides[1 - first].links) link->notices = [] { return true; };
    }
    for (size_t side = 0; side < sides.size(); ++side) {
      EXPECT_TRUE(sides[side].Done()) << "side " << side;
      EXPECT_TRUE(sides[side].received == sides[1 - side].sent) << "side " << side;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(one_away, 100) << "one rank worked, the other one was away";
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

}  // namespace
}  // namespace railhead::rails
