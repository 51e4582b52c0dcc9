// SPDX-License-Identifier: Apache-2.0
//
// Links to peers that are late, gone, or lie; NICs that fail.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "runtime/net/socket.h"
#include "runtime/testing/relay.h"
#include "runtime/transport/connect/reconnector.h"
#include "runtime/transport/verbs/address.h"
#include "runtime/transport/verbs/offer_wire.h"
#include "runtime/transport/verbs/slot.h"
#include "runtime/transport/verbs/verbs_pair_for_test.h"
#include "runtime/transport/wire.h"

namespace railhead::transport::verbs {
namespace {

using ::testing::HasSubstr;

class LinkFaultTest : public EveryNetworkTest {
 protected:
  // Polls `side` over `time` of the fabric's clock in small steps; the first error, or OK.
  absl::Status PollFor(Side& side, absl::Duration time) {
    for (absl::Duration passed; passed < time; passed += absl::Milliseconds(50)) {
      if (const absl::StatusOr<bool> moved = side.Poll(); !moved.ok()) return moved.status();
      fake_->AdvanceTime(absl::Milliseconds(50));
      // The threads that dial live in the machine's time, which must not stand still meanwhile.
      if (network() == Network::kIwarp) absl::SleepFor(absl::Microseconds(100));
    }
    return absl::OkStatus();
  }

  void ExpectFinalError(Side& side, const absl::Status& error) {
    EXPECT_EQ(side.Poll().status(), error);
    EXPECT_EQ(side.Send(0, 0, "x").status(), error);
  }

  // Connects both through somebody between them who has the key, and gives a_ in place of the offer
  // of b_ what `tamper` makes of it.
  absl::Status ConnectBothThrough(absl::FunctionRef<std::string(const std::string&)> tamper) {
    OpenDevice(a_, "fake0");
    OpenDevice(b_, "fake1");
    const auto beside_a = OpenAcceptor();
    const auto beside_b = OpenAcceptor();
    a_.link = *OpenVerbsLink(*a_.device, a_.acceptor, beside_a->Address(), "rank 1");
    b_.link = *OpenVerbsLink(*b_.device, b_.acceptor, beside_b->Address(), "rank 0");
    const auto to_a = *Reconnector::Open(beside_a, a_.acceptor->Address(), "a");
    const auto to_b = *Reconnector::Open(beside_b, b_.acceptor->Address(), "b");
    Line a;
    Line b;
    OfferReader from_a("");
    OfferReader from_b("");
    const auto pass_on = [&](const Line& from, OfferReader& said, const Line& to, bool tampers,
                             int& passed) {
      net::ReceiveSome(from.fd.get(), said.room(), said.buffer()).IgnoreError();
      std::string words;
      if (passed == 0) {
        const std::string offer = said.Offer().value_or("");
        if (offer.empty()) return;
        words = SignedOffer(to.keys.send, tampers ? tamper(offer) : offer);
        ++passed;
      }
      if (passed == 1 && said.Ready().value_or(false)) {
        words += SignedReady(to.keys.send);
        ++passed;
      }
      net::SendAll(to.fd.get(), words, absl::InfiniteFuture()).IgnoreError();
    };
    int to_b_passed = 0;
    int to_a_passed = 0;
    return WorkUntil([&] {
      if (!a.valid() && (a = *to_a->Advance(fake_->Now())).valid()) {
        from_a = OfferReader(a.keys.receive);
      }
      if (!b.valid() && (b = *to_b->Advance(fake_->Now())).valid()) {
        from_b = OfferReader(b.keys.receive);
      }
      if (!a.valid() || !b.valid()) return false;
      pass_on(a, from_a, b, false, to_b_passed);
      pass_on(b, from_b, a, true, to_a_passed);
      return BothUp();
    });
  }

  // The error that b_ finds in what a_ sends after `tamper`.
  absl::Status ErrorAfter(const std::function<void()>& tamper) {
    ConnectBoth();
    tamper();
    EXPECT_TRUE(a_.Send(1, 2, "tampered with").value());
    absl::Status error = b_.Poll().status();
    EXPECT_TRUE(b_.received.empty());
    if (!error.ok()) ExpectFinalError(b_, error);
    return error;
  }
};

INSTANTIATE_TEST_SUITE_P(Networks, LinkFaultTest, ::testing::ValuesIn(kEveryWay), WayName);

// What only happens over RoCE and InfiniBand.
class PathFaultTest : public LinkFaultTest {};

INSTANTIATE_TEST_SUITE_P(Networks, PathFaultTest, ::testing::ValuesIn(kRoceWays), WayName);

// Connecting
// ---------------------------------------------------------------------------------------

TEST_P(LinkFaultTest, NoFrameBeforeThePeerHasAnsweredOverTheRailItself) {
  OpenBoth();
  fake_->HoldCompletions("fake0", true);
  std::string error;
  const absl::Status worked = WorkUntil([&] {
    EXPECT_FALSE(a_.link->connected());
    EXPECT_FALSE(a_.Send(0, 0, "too early").ok());
    if (const auto again = a_.link->Reconnect(fake_->Now()); !again.ok()) {
      error = std::string(again.status().message());
    }
    return error.find("did not answer on this rail in time") != std::string::npos;
  });
  ASSERT_TRUE(worked.ok()) << worked << error;
  EXPECT_THAT(error, HasSubstr("rail 0, device fake0 port 1, peer rank 1"));
  fake_->HoldCompletions("fake0", false);
  ASSERT_TRUE(WorkUntil([this] { return BothUp(); }).ok());
  EXPECT_TRUE(a_.Send(0, 0, "now").value());
  PollUntilQuiet();
  EXPECT_EQ(b_.received.size(), 1u);
}

// The numbers of queue pairs, PSNs and keys of memory cross another network, where somebody may
// sit.
TEST_P(LinkFaultTest, AnOfferThatWasChangedOnItsWayIsRefused) {
  OpenDevice(a_, "fake0");
  OpenDevice(b_, "fake1");
  railhead::testing::Relay to_a(*a_.acceptor);
  railhead::testing::Relay to_b(*b_.acceptor);
  a_.link = *OpenVerbsLink(*a_.device, a_.acceptor, to_b.Address(), "rank 1");
  b_.link = *OpenVerbsLink(*b_.device, b_.acceptor, to_a.Address(), "rank 0");
  for (railhead::testing::Relay* relay : {&to_a, &to_b}) {
    relay->change = [](bool /*from_caller*/, std::string& bytes) {
      // What is longer than a Hello holds an offer, and ends with its signature or more.
      if (bytes.size() > RailHelloSize()) bytes[bytes.size() - kMacSize - 4] ^= 1;
    };
  }
  std::string error;
  const absl::Status refused = WorkUntil([&] {
    to_a.Pump();
    to_b.Pump();
    EXPECT_FALSE(a_.link->connected() || b_.link->connected());
    for (Side* side : {&a_, &b_}) {
      const absl::StatusOr<bool> again = side->link->Reconnect(fake_->Now());
      if (!again.ok()) error = std::string(again.status().message());
      if (error.find("offer was changed on its way") != std::string::npos) return true;
    }
    return false;
  });
  ASSERT_TRUE(refused.ok()) << refused << error;
  to_a.change = to_b.change = nullptr;
  const absl::Status connected = WorkUntil([&] {
    to_a.Pump();
    to_b.Pump();
    return BothUp();
  });
  ASSERT_TRUE(connected.ok()) << connected;
}

// In the middle of a job: somebody answers at the peer's address when the connection is lost, with
// what the peer has answered before, or with what it has just heard, the tokens swapped. It learns
// nothing about a queue pair, and gets none.
TEST_P(LinkFaultTest, WhoTakesALostPeersAddressGetsNoConnection) {
  OpenDevice(a_, "fake0");
  OpenDevice(b_, "fake1");
  railhead::testing::Relay to_a(*a_.acceptor);
  railhead::testing::Relay to_b(*b_.acceptor);
  a_.link = *OpenVerbsLink(*a_.device, a_.acceptor, to_b.Address(), "rank 1");
  b_.link = *OpenVerbsLink(*b_.device, b_.acceptor, to_a.Address(), "rank 0");
  const auto connect = [&] {
    return WorkUntil([&] {
      to_a.Pump();
      to_b.Pump();
      return BothUp();
    });
  };
  ASSERT_TRUE(connect().ok());
  const bool a_dials = a_.acceptor->own().token < b_.acceptor->own().token;
  const Side& dials = a_dials ? a_ : b_;
  railhead::testing::Relay& taken = a_dials ? to_b : to_a;
  const std::string recorded = taken.heard().back().acceptor;

  const auto replay = [&](const std::string& /*hello*/) { return recorded; };
  const auto swap = [](const std::string& hello) {
    const size_t from =
        hello.size() - kMacSize - kRailNonceSize - sizeof(uint64_t) - 2 * kTokenSize;
    return hello.substr(0, from) + hello.substr(from + kTokenSize, kTokenSize) +
           hello.substr(from, kTokenSize) + hello.substr(from + 2 * kTokenSize);
  };
  for (const std::function<std::string(const std::string&)>& answer :
       {std::function<std::string(const std::string&)>(replay),
        std::function<std::string(const std::string&)>(swap)}) {
    const size_t before = taken.heard().size();
    taken.change = [&](bool from_caller, std::string& bytes) {
      if (from_caller) return;
      const std::string& hello = taken.heard().back().caller;
      if (hello.size() >= RailHelloSize()) bytes = answer(hello.substr(0, RailHelloSize()));
    };
    for (Side* side : {&a_, &b_}) side->link->Drop("the test says so");
    taken.Cut();
    std::string error;
    const absl::Status refused = WorkUntil([&] {
      to_a.Pump();
      to_b.Pump();
      EXPECT_FALSE(a_.link->connected() || b_.link->connected());
      if (const auto again = dials.link->Reconnect(fake_->Now()); !again.ok()) {
        error = std::string(again.status().message());
      }
      return error.find("does not prove that it is a rank") != std::string::npos;
    });
    ASSERT_TRUE(refused.ok()) << refused << error;
    // An offer follows a Hello or an Answer.
    for (size_t i = before; i < taken.heard().size(); ++i) {
      EXPECT_LE(taken.heard()[i].caller.size(), RailHelloSize());
      EXPECT_LE(taken.heard()[i].acceptor.size(), kRailNonceSize + kMacSize);
    }
    taken.change = nullptr;
    const absl::Status connected = connect();
    ASSERT_TRUE(connected.ok()) << connected;
    PollUntilQuiet();
    a_.received.clear();
    ASSERT_TRUE(b_.Send(1, 0, "from the peer itself").value());
    PollUntilQuiet();
    EXPECT_EQ(a_.received.size(), 1U);
  }
}

// A greeting that gets lost costs one attempt.
TEST_P(PathFaultTest, AGreetingThatFailsIsFollowedByAnotherAttempt) {
  fake_->FailNextSend("fake0", IBV_WC_RETRY_EXC_ERR);
  ConnectBoth();
  EXPECT_TRUE(a_.Send(0, 0, "x").value());
  PollUntilQuiet();
  EXPECT_EQ(b_.received.size(), 1u);
}

// The time of a peer that comes late does not count.
TEST_P(LinkFaultTest, AVeryLatePeerIsStillFound) {
  OpenBoth();
  for (int i = 0; i < 300; ++i) {
    a_.link->Reconnect(fake_->Now()).IgnoreError();
    fake_->AdvanceTime(absl::Milliseconds(100));
  }
  EXPECT_FALSE(a_.link->connected());
  ASSERT_TRUE(WorkUntil([this] { return BothUp(); }).ok());
  PollUntilQuiet();
  ASSERT_TRUE(a_.Send(0, 0, "found").value());
  ASSERT_TRUE(b_.Send(0, 0, "found").value());
  PollUntilQuiet();
  EXPECT_EQ(a_.received.size(), 1u);
  EXPECT_EQ(b_.received.size(), 1u);
}

// Completions that turn up late change nothing.
TEST_P(LinkFaultTest, ConnectsThroughAFabricThatMovesAtRandom) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SetUp();
    fake_->MoveAtRandom(seed);
    OpenBoth();
    bool sent = false;
    const absl::Status arrived = WorkUntil([&] {
      if (a_.link->connected()) sent = sent || a_.Send(0, 0, "found").value();
      return !b_.received.empty();
    });
    EXPECT_TRUE(arrived.ok()) << arrived << " with seed " << seed;
    TearDown();
  }
}

TEST_P(LinkFaultTest, WhatIsNoOfferIsRefused) {
  for (const std::string& bytes : {std::string("tcp:10.0.0.1:7000"), std::string(400, '\xff')}) {
    SetUp();
    const absl::Status error = ConnectBothThrough([&](const std::string&) { return bytes; });
    EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(error.message()), HasSubstr("peer rank 1"));
    TearDown();
  }
}

TEST_P(PathFaultTest, NoGidInCommon) {
  FakeDevice six = RoceDevice("fake1", "2001:db8::2");
  six.gids = {FakeGid(0, "2001:db8::2", IBV_GID_TYPE_ROCE_V2)};
  FakeDevice four = RoceDevice("fake0", "10.0.0.1");
  four.gids = {FakeGid(4, "10.0.0.1", IBV_GID_TYPE_ROCE_V2)};
  Make({four, six});
  const absl::Status error = ConnectError();
  EXPECT_EQ(error.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(error.message()), HasSubstr("RoCE v2 over IPv4 10.0.0.1"));
  EXPECT_THAT(std::string(error.message()), HasSubstr("RoCE v2 over IPv6 2001:db8::2"));
}

TEST_P(PathFaultTest, LinkLayersDiffer) {
  FakeDevice infiniband = RoceDevice("fake1", "10.0.0.2");
  infiniband.infiniband = true;
  infiniband.lid = 5;
  infiniband.gids = {FakeGid(0, "fe80::5", IBV_GID_TYPE_IB)};
  Make({RoceDevice("fake0", "10.0.0.1"), infiniband});
  EXPECT_EQ(ConnectError().code(), absl::StatusCode::kFailedPrecondition);
}

// The sparse tables of two pods: only the GIDs at these indices work, and the fake drops the rest.
TEST_P(PathFaultTest, SparseGidTables) {
  FakeDevice a = RoceDevice("fake0", "10.0.0.1");
  a.gids = {
      FakeGid(6, "fe80::a", IBV_GID_TYPE_ROCE_V1), FakeGid(7, "fe80::a", IBV_GID_TYPE_ROCE_V2),
      FakeGid(8, "10.0.0.1", IBV_GID_TYPE_ROCE_V1), FakeGid(9, "10.0.0.1", IBV_GID_TYPE_ROCE_V2)};
  FakeDevice b = RoceDevice("fake1", "10.0.0.2");
  b.gids = {FakeGid(4, "10.0.0.2", IBV_GID_TYPE_ROCE_V2), FakeGid(5, "::", IBV_GID_TYPE_ROCE_V2)};
  Make({a, b});
  ConnectBoth();
  ASSERT_TRUE(a_.Send(0, 0, "through").value());
  PollUntilQuiet();
  EXPECT_EQ(b_.received.size(), 1u);
}

TEST_P(PathFaultTest, InfinibandInOneSubnetAndAcrossSubnets) {
  for (const char* other_subnet : {"fe80::22", "fec0:0:0:7::22"}) {
    FakeDevice a = RoceDevice("fake0", "10.0.0.1");
    a.infiniband = true;
    a.lid = 11;
    a.gids = {FakeGid(0, "fe80::11", IBV_GID_TYPE_IB)};
    FakeDevice b = a;
    b.name = "fake1";
    b.lid = 22;
    b.gids = {FakeGid(0, other_subnet, IBV_GID_TYPE_IB)};
    Make({a, b});
    ConnectBoth();
    ASSERT_TRUE(a_.Send(0, 0, "ib").value());
    PollUntilQuiet();
    EXPECT_EQ(b_.received.size(), 1u) << other_subnet;
    TearDown();
  }
}

TEST_P(PathFaultTest, TheSmallerMtuIsUsed) {
  FakeDevice small = RoceDevice("fake1", "10.0.0.2");
  small.mtu = IBV_MTU_1024;
  Make({RoceDevice("fake0", "10.0.0.1"), small});
  ConnectBoth();  // the fake refuses a path MTU larger than its port's
  ASSERT_TRUE(a_.Send(0, 0, std::string(60000, 'm')).value());
  PollUntilQuiet();
  EXPECT_EQ(b_.received.size(), 1u);
}

// Two InfiniBand ports with these P_Key tables.
std::vector<FakeDevice> InfinibandPorts(std::vector<uint16_t> a, std::vector<uint16_t> b) {
  std::vector<FakeDevice> devices(2);
  for (uint16_t i = 0; i < 2; ++i) {
    devices[i].name = absl::StrCat("fake", i);
    devices[i].infiniband = true;
    devices[i].lid = static_cast<uint16_t>(i + 1);
    devices[i].pkeys = std::move(i == 0 ? a : b);
  }
  return devices;
}

TEST_P(PathFaultTest, BothSidesUseThePartitionThatTheyHaveInCommon) {
  // The fake loses what comes from another partition, or from one limited member to another.
  Make(InfinibandPorts({0x7fff, 0, 0x8001}, {0x7fff, 0x8002, 0x0001}));
  ConnectBoth();
  ASSERT_TRUE(a_.Send(0, 0, "x").value());
  PollUntilQuiet();
  EXPECT_EQ(b_.received.size(), 1u);
  EXPECT_EQ(fake_->pairs("fake0").at(0).pkey_index, 2);
  EXPECT_EQ(fake_->pairs("fake1").at(0).pkey_index, 2);
}

TEST_P(PathFaultTest, ThePartitionThatIsSetIsUsed) {
  Make(InfinibandPorts({0xffff, 0x8001}, {0xffff, 0x8001}));
  b_.settings.pkey = 0x8001;
  ConnectBoth();
  ASSERT_TRUE(a_.Send(0, 0, "x").value());
  PollUntilQuiet();
  EXPECT_EQ(b_.received.size(), 1u);
  EXPECT_EQ(fake_->pairs("fake0").at(0).pkey_index, 1);
}

TEST_P(PathFaultTest, NoPartitionInCommonNamesBothSides) {
  Make(InfinibandPorts({0x7fff, 0x8001}, {0x7fff, 0x8002}));
  const absl::Status error = ConnectError();
  EXPECT_EQ(error.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(error.message()),
              ::testing::AllOf(HasSubstr("rail 0, device fake"), HasSubstr("peer rank "),
                               HasSubstr("this side has P_Keys 0x800"), HasSubstr("0x8001, 0x7fff"),
                               HasSubstr("0x8002, 0x7fff"), HasSubstr("RAILHEAD_IB_PKEY")));
}

TEST_P(PathFaultTest, ClassAndLevelAreThoseThatAreSet) {
  for (Side* side : {&a_, &b_}) {
    side->settings.traffic_class = 106;
    side->settings.service_level = 3;
  }
  ConnectBoth();
  for (const char* device : {"fake0", "fake1"}) {
    const ibv_ah_attr route = fake_->pairs(device).at(0).ah_attr;
    EXPECT_EQ(route.grh.traffic_class, 106);
    EXPECT_EQ(route.sl, 3);
  }
}

TEST_P(LinkFaultTest, ANicWithoutInlineData) {
  FakeDevice plain = Device("fake0", "10.0.0.1");
  plain.max_inline = 0;
  FakeDevice other = Device("fake1", "10.0.0.2");
  other.max_inline = 0;
  Make({plain, other});
  ConnectBoth();
  ASSERT_TRUE(a_.Send(0, 0, "small").value());
  PollUntilQuiet();
  EXPECT_EQ(b_.received.size(), 1u);
  EXPECT_EQ(fake_->inline_sends(), 0u);
}

// Failures
// -----------------------------------------------------------------------------------------

TEST_P(PathFaultTest, ACompletionErrorIsFinalAndSaysWhereAndWhat) {
  ConnectBoth();
  fake_->FailNextSend("fake0", IBV_WC_REM_ACCESS_ERR);
  ASSERT_TRUE(a_.Send(0, 0, "x").value());
  const absl::Status error = a_.Poll().status();
  EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(error.message()),
              ::testing::AllOf(HasSubstr("rail 0, device fake0 port 1, peer rank 1 at 10.0.0.2"),
                               HasSubstr("remote access error"), HasSubstr("the peer has closed")));
  ExpectFinalError(a_, error);
}

// rdma_rxe, while the node has no neighbour on the rail's network.
TEST_P(PathFaultTest, ASendWithoutARouteIsALostRail) {
  ConnectBoth();
  fake_->FailNextSend("fake0", IBV_WC_LOC_QP_OP_ERR);
  ASSERT_TRUE(a_.Send(0, 0, "x").value());
  const absl::Status error = PollFor(a_, absl::Seconds(1));
  EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable) << error;
  EXPECT_THAT(std::string(error.message()), HasSubstr("check the node's routes and addresses"));
}

// On another rail it would be the same.
TEST_P(PathFaultTest, WhatThisSideDidWrongIsNoLostRail) {
  ConnectBoth();
  fake_->FailNextSend("fake0", IBV_WC_LOC_PROT_ERR);
  ASSERT_TRUE(a_.Send(0, 0, "x").value());
  EXPECT_EQ(PollFor(a_, absl::Seconds(1)).code(), absl::StatusCode::kInternal);
}

TEST_P(PathFaultTest, APeerThatDiesWithFramesUnderWay) {
  ConnectBoth();
  b_ = Side();
  ASSERT_TRUE(a_.Send(0, 0, "anybody there?").value());
  EXPECT_TRUE(PollFor(a_, absl::Milliseconds(800)).ok());
  const absl::Status error = PollFor(a_, absl::Milliseconds(400));
  EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(error.message()), HasSubstr("the peer's process is alive"));
}

TEST_P(LinkFaultTest, APeerThatDiesWhileThisSideOnlyWaits) {
  ConnectBoth();
  EXPECT_TRUE(PollFor(a_, absl::Seconds(30)).ok());
  b_ = Side();
  EXPECT_EQ(PollFor(a_, absl::Seconds(8)).code(), absl::StatusCode::kUnavailable);
}

// A peer whose process hangs is alive for its NIC. The signs of life must not look like progress,
// or nobody would ever notice.
TEST_P(LinkFaultTest, SignsOfLifeAreNotMovement) {
  ConnectBoth();
  const uint64_t before = fake_->probes();
  for (int i = 0; i < 100; ++i) {
    const absl::StatusOr<bool> moved = a_.Poll();
    ASSERT_TRUE(moved.ok()) << moved.status();
    EXPECT_FALSE(*moved);
    fake_->AdvanceTime(absl::Milliseconds(100));
  }
  const uint64_t probes = fake_->probes() - before;
  EXPECT_GE(probes, 5u * qps());
  EXPECT_LE(probes, 12u * qps());
}

TEST_P(LinkFaultTest, ThePortGoesDown) {
  ConnectBoth();
  fake_->SetPortState("fake0", IBV_PORT_DOWN);
  ASSERT_TRUE(a_.Send(0, 0, "x").value());
  const absl::Status error = PollFor(a_, absl::Seconds(8));
  EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(error.message()), HasSubstr("this side's port is DOWN"));
}

// NICs that forget to say that they have given up.
TEST_P(PathFaultTest, ASilentNicIsReported) {
  ConnectBoth();
  fake_->HoldCompletions("fake0", true);
  ASSERT_TRUE(a_.Send(0, 0, "x").value());
  EXPECT_TRUE(PollFor(a_, absl::Seconds(19)).ok());
  const absl::Status error = PollFor(a_, absl::Seconds(4));
  EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(error.message()), HasSubstr("no send completion from the NIC"));
  ExpectFinalError(a_, error);
}

TEST_P(PathFaultTest, ASilentNicWhosePortIsDownIsReportedSooner) {
  ConnectBoth();
  fake_->HoldCompletions("fake0", true);
  fake_->SetPortState("fake0", IBV_PORT_DOWN);
  EXPECT_TRUE(PollFor(a_, absl::Seconds(5)).ok());
  const absl::Status error = PollFor(a_, absl::Seconds(4));
  EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(error.message()), HasSubstr("port is DOWN: check its cable"));
}

TEST_P(LinkFaultTest, AShortOutageIsSurvived) {
  ConnectBoth();
  fake_->SetPortState("fake1", IBV_PORT_DOWN);
  ASSERT_TRUE(a_.Send(0, 0, "patience").value());
  ASSERT_TRUE(PollFor(a_, absl::Milliseconds(500)).ok());
  EXPECT_NE(a_.link->load().backlog, 0u);
  fake_->SetPortState("fake1", IBV_PORT_ACTIVE);
  ASSERT_TRUE(PollFor(a_, absl::Seconds(1)).ok());
  ASSERT_TRUE(b_.Poll().ok());
  EXPECT_EQ(a_.link->load().backlog, 0u);
  EXPECT_EQ(b_.received.size(), 1u);
}

// Peers that lie
// ------------------------------------------------------------------------------------
// A SlotHeader starts the message.

TEST_P(LinkFaultTest, AFrameThatClaimsMoreThanASlot) {
  const absl::Status error =
      ErrorAfter([&] { fake_->CorruptNextSend("fake0", offsetof(SlotHeader, payload) + 3, 0x40); });
  EXPECT_THAT(std::string(error.message()), HasSubstr("more than a slot"));
}

TEST_P(LinkFaultTest, AFrameWithAnotherNumberInItsSlot) {
  EXPECT_FALSE(ErrorAfter([&] {
                 fake_->CorruptNextSend("fake0", offsetof(SlotHeader, sequence), 0x11);
               }).ok());
}

TEST_P(LinkFaultTest, AFrameThatReportsWhatWasNeverSent) {
  const absl::Status error =
      ErrorAfter([&] { fake_->CorruptNextSend("fake0", offsetof(SlotHeader, consumed), 0xff); });
  EXPECT_THAT(std::string(error.message()), HasSubstr("more frames than were sent"));
}

TEST_P(LinkFaultTest, AFrameWithReservedBits) {
  constexpr uint8_t kUnknownKind = transport::kMaxFrameKind + 1;
  constexpr uint8_t kPlacedAndRepeated = transport::kTransportsFlag | transport::kRepeatedFlag;
  const std::pair<size_t, uint8_t> values[] = {{offsetof(SlotHeader, flags), 8},
                                               {offsetof(SlotHeader, flags), kPlacedAndRepeated},
                                               // Rails that lost it, although it is no repeat.
                                               {offsetof(SlotHeader, flags) + 2, 1},
                                               {offsetof(SlotHeader, flags) + 1, kUnknownKind},
                                               {offsetof(SlotHeader, reserved), 4}};
  for (const auto& [offset, value] : values) {
    SetUp();
    const auto corrupt = [&, at = offset, to = value] { fake_->CorruptNextSend("fake0", at, to); };
    EXPECT_FALSE(ErrorAfter(corrupt).ok()) << offset;
    TearDown();
  }
}

TEST_P(LinkFaultTest, ImmediateValuesThatMakeNoSense) {
  for (const uint32_t immediate :
       {PackImmediate(MessageKind::kFrame, kFirstFrame + 1),  // out of sequence
        PackImmediate(MessageKind::kFrame, 0),
        PackImmediate(MessageKind::kConsumed, kFirstFrame + 9),  // nothing was sent
        uint32_t{3} << 30}) {                                    // no such kind
    SetUp();
    const absl::Status error = ErrorAfter([&] { fake_->ReplaceNextImmediate("fake0", immediate); });
    EXPECT_EQ(error.code(), absl::StatusCode::kInternal) << immediate;
    EXPECT_THAT(std::string(error.message()), HasSubstr("same version of Railhead"));
    TearDown();
  }
}

// A peer that knows the key of the ring still cannot write beside it.
TEST_P(LinkFaultTest, WritesBesideTheRingAreRefused) {
  const absl::Status connected = ConnectBothThrough([](const std::string& offer) {
    VerbsAddress address = ParseAddress(offer).value();
    address.ring_address += 1 << 20;
    return EncodeAddress(address);
  });
  ASSERT_TRUE(connected.ok()) << connected;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(a_.Send(0, i, std::string(65536, 'x')).value());
  EXPECT_EQ(a_.Poll().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(b_.Poll().ok());
}

}  // namespace
}  // namespace railhead::transport::verbs
