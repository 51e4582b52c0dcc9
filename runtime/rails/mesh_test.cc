// SPDX-License-Identifier: Apache-2.0
//
// A mesh of peers: it reports what does not move, stops at an alarm, adds up what its peers
// carried, and creates peers when they are needed.
#include "runtime/rails/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/companion.h"
#include "runtime/net/event.h"
#include "runtime/rails/peer.h"
#include "runtime/rails/peers_for_test.h"
#include "runtime/testing/fake_link.h"
#include "runtime/transport/wake_event.h"

namespace railhead::rails {
namespace {

using railhead::testing::FakeLink;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

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

// In an all-to-all of many ranks, all stand still if one does.
TEST(MeshTest, OfManyPeersThatStandStillTheFirstAreDescribed) {
  constexpr int kPeers = 64;
  std::map<int, std::unique_ptr<Peer>> peers;
  for (int rank = 1; rank <= kPeers; ++rank) peers[rank] = MakePeers(2).a;
  const std::unique_ptr<Mesh> mesh = *Mesh::Create(std::move(peers), {});
  const std::map<int, std::string> named = {
      {1, "in all sent 0, received 0 bytes)"},
      {4, "in all sent 0, received 0 bytes)"},
      {5, "in all sent 0, received 0 bytes; and with 1 more (rank 5))"},
      {kPeers, "in all sent 0, received 0 bytes; and with 60 more (ranks 5-64))"}};
  for (const auto& [waiting, end] : named) {
    std::string into(100, '\0');
    for (int rank = 1; rank <= waiting; ++rank) {
      if (mesh->progress(rank) == 0) mesh->PostReceive(rank, Into(into));
    }
    mesh->Begin(absl::Milliseconds(20));
    absl::Status status;
    while (status.ok()) status = mesh->Progress();
    const std::string text(status.message());
    EXPECT_LT(text.size(), 2000U) << text;
    EXPECT_THAT(text, HasSubstr("rank 1 (pod b)"));
    EXPECT_THAT(text, EndsWith(end));
  }
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

// A companion that waits for ever, and sometimes has no descriptor to wait with.
class WaitingCompanion final : public Companion {
 public:
  // The next calls of Arm fail.
  int failing = 0;
  // The descriptor opens at the first call that succeeds, as a mailbox's does, or at once.
  explicit WaitingCompanion(bool opens_late) {
    if (!opens_late) Open();
  }
  int arms() const { return arms_; }

  bool Waits() const override { return true; }
  absl::StatusOr<bool> Poll() override { return false; }
  int event_fd() const override { return event_.fd(); }
  absl::Status Arm() override {
    ++arms_;
    if (failing > 0) {
      --failing;
      return absl::ResourceExhaustedError("socket: Too many open files");
    }
    if (!event_.valid()) Open();
    return absl::OkStatus();
  }
  void Answer() override { event_.Clear(); }
  uint64_t progress() const override { return 0; }
  std::string DescribeProgress() const override { return "waits"; }

 private:
  void Open() { event_ = *net::Event::Open(); }

  net::Event event_;
  int arms_ = 0;
};

TEST(MeshTest, ACompanionThatCouldNotBeArmedIsPolledOnlyUntilItCan) {
  constexpr absl::Duration kWait = absl::Milliseconds(300);
  for (const bool opens_late : {false, true}) {
    for (const int failing : {0, 1, 3, 10}) {
      WaitingCompanion companion(opens_late);
      companion.failing = failing;
      const std::unique_ptr<Mesh> mesh = *Mesh::Create({}, {});
      ASSERT_TRUE(mesh->Accompany(companion).ok());
      mesh->Begin(kWait);
      EXPECT_TRUE(absl::IsDeadlineExceeded(mesh->Progress()));
      // The first sleep takes 20 ms, those that follow a second; a thread that polls sleeps 1 ms.
      EXPECT_LT(companion.arms(), failing + 10)
          << failing << (opens_late ? " times, opens late" : " times, open from the start");
    }
  }
}

// A peer that leaves, too, waits until this rank has told what it has taken.
TEST(MeshTest, WhoLeavesTellsAtOnceWhatItHasTaken) {
  for (const size_t size : {1U, 100U, 100'000U}) {
    for (const int messages : {1, 3}) {
      PeerPair pair = MakePeers(1);
      BeLazy(pair);
      const std::unique_ptr<Mesh> mesh = MeshOf(std::move(pair.a));
      const std::string data(size, 'x');
      std::vector<std::string> into(static_cast<size_t>(messages), std::string(size, '\0'));
      mesh->Begin(absl::Seconds(20));
      Mesh::Ticket last = 0;
      for (std::string& text : into) {
        pair.b->PostSend(Bytes(data));
        last = mesh->PostReceive(1, Into(text));
      }
      while (!mesh->ReceiveDone(1, last)) {
        ASSERT_TRUE(pair.b->Poll(kNow).ok());
        ASSERT_TRUE(mesh->Progress().ok());
      }
      mesh->ExpectClose();
      ASSERT_TRUE(pair.b->Poll(kNow).ok());
      EXPECT_TRUE(pair.b->Acknowledged()) << messages << " messages of " << size << " bytes";
    }
  }
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

TEST(RailTotalsTest, EachRailIsAddedToTheOneWithItsName) {
  RailTotals rail{{0, "rxe0", 1, "verbs"}};
  rail.peers = 2;
  rail.transmit_bytes = 10;
  RailTotals lost = rail;
  lost.up = false;
  lost.lost_peers = 1;
  lost.failovers = 3;
  lost.returns = 2;
  lost.weight = 0.25;
  RailTotals other = rail;
  other.name.rail = 1;
  std::vector<RailTotals> sums = {rail};
  Add({other, lost}, sums);
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_FALSE(sums[0].up);
  EXPECT_EQ(sums[0].peers, 4);
  EXPECT_EQ(sums[0].lost_peers, 1);
  EXPECT_EQ(sums[0].failovers, 3U);
  EXPECT_EQ(sums[0].returns, 2U);
  EXPECT_EQ(sums[0].transmit_bytes, 20U);
  EXPECT_EQ(sums[0].weight, 0.25);
  EXPECT_TRUE(sums[1].up);
  EXPECT_EQ(sums[1].peers, 2);
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

}  // namespace
}  // namespace railhead::rails
