// SPDX-License-Identifier: Apache-2.0
//
// Links to peers that are late, gone, or lie; NICs that fail.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>

#include "runtime/base/wire.h"
#include "runtime/transport/verbs/address.h"
#include "runtime/transport/verbs/slot.h"
#include "runtime/transport/verbs/verbs_pair_for_test.h"

namespace railhead::transport::verbs {
namespace {

using testing::HasSubstr;

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
    EXPECT_EQ(side.link->Arm(Wake::kAll), error);
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

INSTANTIATE_TEST_SUITE_P(Networks, LinkFaultTest, testing::ValuesIn(kEveryWay), WayName);

// What only happens over RoCE and InfiniBand.
class PathFaultTest : public LinkFaultTest {};

INSTANTIATE_TEST_SUITE_P(Networks, PathFaultTest, testing::ValuesIn(kRoceWays), WayName);

// Greeting
// -----------------------------------------------------------------------------------------

TEST_P(LinkFaultTest, NoFrameBeforeThePeerHasAnswered) {
  OpenBoth();
  ConnectSide(a_, b_);
  EXPECT_FALSE(a_.Send(0, 0, "too early").value());
  ASSERT_TRUE(a_.Poll().ok());
  EXPECT_FALSE(a_.Send(0, 0, "too early").value());
  ConnectSide(b_, a_);
  Greet();
  EXPECT_TRUE(a_.Send(0, 0, "now").value());
}

// Whoever is late wakes the other at once, without waiting for the NIC's timeout: the clock stands
// still here.
TEST_P(LinkFaultTest, ALatePeerDoesNotCostATimeout) {
  OpenBoth();
  ConnectSide(a_, b_);
  ASSERT_TRUE(PollFor(a_, absl::Milliseconds(200)).ok());
  ConnectSide(b_, a_);
  Greet();
  ASSERT_TRUE(a_.Send(0, 0, "hello").value());
  ASSERT_TRUE(b_.Send(0, 0, "hello").value());
  PollUntilQuiet();
  EXPECT_EQ(a_.received.size(), 1u);
  EXPECT_EQ(b_.received.size(), 1u);
}

// The NIC gives up on the greeting several times before the peer is there.
TEST_P(LinkFaultTest, AVeryLatePeerIsStillFound) {
  for (const int seconds : {4, 9, 31}) {
    SetUp();
    OpenBoth();
    ConnectSide(a_, b_);
    const absl::Status waiting = PollFor(a_, absl::Seconds(seconds));
    ASSERT_TRUE(waiting.ok()) << waiting;
    ConnectSide(b_, a_);
    AwaitConnection();
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(PollFor(a_, absl::Milliseconds(50)).ok());
      ASSERT_TRUE(PollFor(b_, absl::Milliseconds(50)).ok());
    }
    ASSERT_TRUE(a_.Send(0, 0, "found").value());
    ASSERT_TRUE(b_.Send(0, 0, "found").value());
    PollUntilQuiet();
    EXPECT_EQ(a_.received.size(), 1u);
    EXPECT_EQ(b_.received.size(), 1u);
    TearDown();
  }
}

// The same while completions turn up late: those of a queue pair's earlier lives must not be taken
// for news.
TEST_P(LinkFaultTest, CompletionsOfAnEarlierLifeMeanNothing) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SetUp();
    OpenBoth();
    ConnectSide(a_, b_);
    fake_->MoveAtRandom(seed);
    const absl::Status waiting = PollFor(a_, absl::Seconds(15));
    ASSERT_TRUE(waiting.ok()) << waiting << " with seed " << seed;
    ConnectSide(b_, a_);
    bool sent = false;
    for (int i = 0; i < 1000 && b_.received.empty(); ++i) {
      sent = sent || a_.Send(0, 0, "found").value();
      ASSERT_TRUE(PollFor(a_, absl::Milliseconds(50)).ok());
      ASSERT_TRUE(PollFor(b_, absl::Milliseconds(50)).ok());
    }
    EXPECT_EQ(b_.received.size(), 1u) << "seed " << seed;
    TearDown();
  }
}

// The later side's greeting arrives, but the earlier side does not look before its own NIC has
// given up. Its queue pair starts again behind what it had received.
TEST_P(PathFaultTest, AGreetingThatArrivedBeforeTheNicGaveUpStillCounts) {
  OpenBoth();
  ConnectSide(a_, b_);
  ConnectSide(b_, a_);
  fake_->SetPortState("fake1", IBV_PORT_DOWN);
  for (int i = 0; i < 20; ++i) fake_->AdvanceTime(absl::Milliseconds(500));
  fake_->SetPortState("fake1", IBV_PORT_ACTIVE);
  const uint64_t before = fake_->messages();
  ASSERT_TRUE(a_.Poll().ok());
  PollUntilQuiet();
  EXPECT_EQ(fake_->messages() - before, 1u);  // its own greeting; the peer's was not needed again
  ASSERT_TRUE(a_.Send(0, 0, "x").value());
  ASSERT_TRUE(b_.Send(0, 0, "y").value());
  PollUntilQuiet();
  EXPECT_EQ(a_.received.size(), 1u);
  EXPECT_EQ(b_.received.size(), 1u);
}

TEST_P(LinkFaultTest, APeerThatNeverComesIsReportedAtTheDeadline) {
  OpenBoth();
  ConnectSide(a_, b_, absl::Seconds(10));
  EXPECT_TRUE(PollFor(a_, absl::Seconds(10)).ok());
  const absl::Status error = PollFor(a_, absl::Seconds(1));
  EXPECT_EQ(error.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(error.message()),
              HasSubstr("rail 0, device fake0 port 1, peer rank 1 at 10.0.0.2"));
  ExpectFinalError(a_, error);
}

// Connect
// ------------------------------------------------------------------------------------------

TEST_P(LinkFaultTest, ConnectRefusesWhatIsNoAddress) {
  for (const std::string& bytes :
       {std::string(), std::string("tcp:10.0.0.1:7000"), std::string(400, '\xff')}) {
    OpenSide(a_, "fake0", "rank 1");
    const absl::Status error = a_.endpoint->Connect(bytes, absl::InfiniteFuture()).status();
    EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(error.message()), HasSubstr("peer rank 1"));
  }
}

TEST_P(LinkFaultTest, ConnectOnlyOnce) {
  ConnectBoth();
  EXPECT_EQ(a_.endpoint->Connect(b_.endpoint->Address(), absl::InfiniteFuture()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_P(PathFaultTest, NoGidInCommon) {
  FakeDevice six = RoceDevice("fake1", "2001:db8::2");
  six.gids = {FakeGid(0, "2001:db8::2", IBV_GID_TYPE_ROCE_V2)};
  FakeDevice four = RoceDevice("fake0", "10.0.0.1");
  four.gids = {FakeGid(4, "10.0.0.1", IBV_GID_TYPE_ROCE_V2)};
  Make({four, six});
  OpenBoth();
  const absl::Status error =
      a_.endpoint->Connect(b_.endpoint->Address(), absl::InfiniteFuture()).status();
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
  OpenBoth();
  EXPECT_EQ(a_.endpoint->Connect(b_.endpoint->Address(), absl::InfiniteFuture()).status().code(),
            absl::StatusCode::kFailedPrecondition);
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
  OpenBoth();
  const absl::Status error =
      a_.endpoint->Connect(b_.endpoint->Address(), fake_->Now() + absl::Seconds(1)).status();
  EXPECT_EQ(error.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(error.message()),
      testing::AllOf(HasSubstr("rail 0, device fake0 port 1"), HasSubstr("peer rank 1"),
                     HasSubstr("this side has P_Keys 0x8001, 0x7fff"),
                     HasSubstr("the peer has 0x8002, 0x7fff"), HasSubstr("RAILHEAD_IB_PKEY")));
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
              testing::AllOf(HasSubstr("rail 0, device fake0 port 1, peer rank 1 at 10.0.0.2"),
                             HasSubstr("remote access error"), HasSubstr("the peer has closed")));
  ExpectFinalError(a_, error);
}

// On another rail it would be the same.
TEST_P(PathFaultTest, WhatThisSideDidWrongIsNoLostRail) {
  ConnectBoth();
  fake_->FailNextSend("fake0", IBV_WC_LOC_QP_OP_ERR);
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
  EXPECT_THAT(std::string(error.message()), HasSubstr("the NIC has said nothing"));
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
  for (const size_t offset : {offsetof(SlotHeader, flags), offsetof(SlotHeader, flags) + 1,
                              offsetof(SlotHeader, reserved)}) {
    SetUp();
    EXPECT_FALSE(ErrorAfter([&] { fake_->CorruptNextSend("fake0", offset, 4); }).ok()) << offset;
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
  OpenBoth();
  const std::string both = b_.endpoint->Address();
  WireReader reader(both);
  VerbsAddress address = ParseAddress(reader.String(both.size())).value();
  address.ring_address += 1 << 20;
  WireWriter writer;
  writer.String(EncodeAddress(address));
  writer.String("");  // no hall
  absl::StatusOr<std::unique_ptr<Link>> link =
      a_.endpoint->Connect(writer.Take(), fake_->Now() + absl::Seconds(60));
  ASSERT_TRUE(link.ok()) << link.status();
  a_.link = *std::move(link);
  ConnectSide(b_, a_);
  Greet();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(a_.Send(0, i, std::string(65536, 'x')).value());
  EXPECT_EQ(a_.Poll().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(b_.Poll().ok());
}

}  // namespace
}  // namespace railhead::transport::verbs
