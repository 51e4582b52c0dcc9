// SPDX-License-Identifier: Apache-2.0
//
// What only happens over iWARP: the connection manager, strangers at its port, a TCP that is
// patient.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/transport/verbs/verbs_pair_for_test.h"

namespace railhead::transport::verbs {
namespace {

using ::testing::HasSubstr;

class IwarpTest : public VerbsPairTest {
 protected:
  Network network() const override { return Network::kIwarp; }

  // Polls both over `time` of the fabric's clock; the first error of a_.
  absl::Status LiveFor(absl::Duration time) {
    for (absl::Duration passed; passed < time; passed += absl::Milliseconds(50)) {
      fake_->AdvanceTime(absl::Milliseconds(50));
      if (const absl::StatusOr<bool> moved = a_.Poll(); !moved.ok()) return moved.status();
      b_.Poll().IgnoreError();
    }
    return absl::OkStatus();
  }
  void ExpectBothWaysWork() {
    ASSERT_TRUE(a_.Send(0, 0, "forth").value());
    ASSERT_TRUE(b_.Send(0, 0, "back").value());
    PollUntilQuiet();
    EXPECT_EQ(a_.received.size(), 1u);
    EXPECT_EQ(b_.received.size(), 1u);
  }
};

TEST_F(IwarpTest, DescribesItself) {
  EXPECT_EQ((*OpenFake(fake_, "fake0"))->Describe(),
            "rail 0, device fake0 port 1: iWARP, 10.0.0.1");
}

TEST_F(IwarpTest, ADeviceWhoseInterfaceIsElsewhereIsRefusedWithTheFix) {
  FakeDevice device = Device("fake0", "10.0.0.1");
  device.addresses.clear();
  Make({device});
  const absl::Status status = OpenFake(fake_, "fake0").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("rail 0, device fake0 port 1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("hostNetwork: true"));
}

TEST_F(IwarpTest, Ipv6) {
  Make({Device("fake0", "2001:db8::1"), Device("fake1", "2001:db8::2")});
  ConnectBoth();
  ExpectBothWaysWork();
}

TEST_F(IwarpTest, NoFamilyInCommon) {
  Make({Device("fake0", "10.0.0.1"), Device("fake1", "2001:db8::2")});
  const absl::Status error = ConnectError();
  EXPECT_EQ(error.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(error.message()), HasSubstr("of the same family"));
}

TEST_F(IwarpTest, APeerWithAnotherNetworkIsRefused) {
  Make({Device("fake0", "10.0.0.1"), RoceDevice("fake1", "10.0.0.2")});
  const absl::Status error = ConnectError();
  EXPECT_EQ(error.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(error.message()), HasSubstr("iWARP"));
  EXPECT_THAT(std::string(error.message()), HasSubstr("Ethernet"));
}

// Both sides listen until they know who dials: a stranger may call at either, before and after.
TEST_F(IwarpTest, StrangersAreRefusedAndCounted) {
  OpenBoth();
  fake_->cm().HoldConnects(true);
  const absl::Status connected = WorkUntil([this] {
    if (fake_->cm().strangers_refused() >= 3) fake_->cm().HoldConnects(false);
    for (const std::string& data : {std::string(), std::string(16, 'x'), std::string(200, '\0')}) {
      fake_->cm().CallAsStranger("fake0", data);
      fake_->cm().CallAsStranger("fake1", data);
    }
    return BothUp();
  });
  ASSERT_TRUE(connected.ok()) << connected;
  ExpectBothWaysWork();
  EXPECT_EQ(fake_->cm().connections(), 1u);
  const uint64_t refused = fake_->cm().strangers_refused();
  EXPECT_GE(refused, 3u);
  EXPECT_EQ(a_.link->stats().strangers + b_.link->stats().strangers, refused);
  // Nobody listens after the greeting.
  fake_->cm().CallAsStranger("fake0", "late");
  fake_->cm().CallAsStranger("fake1", "late");
  PollUntilQuiet();
  EXPECT_EQ(fake_->cm().strangers_refused(), refused);
  EXPECT_EQ(fake_->cm().connections(), 1u);
}

// The NIC has no error for a peer that cannot be reached: TCP repeats for a quarter of an hour.
TEST_F(IwarpTest, ANodeThatVanishesIsNoticed) {
  for (const bool with_frames_under_way : {false, true}) {
    SetUp();
    ConnectBoth();
    // Nor does anybody there notice.
    fake_->HoldCompletions("fake1", true);
    fake_->SetPortState("fake1", IBV_PORT_DOWN);
    if (with_frames_under_way) {
      ASSERT_TRUE(a_.Send(0, 0, "anybody there?").value());
    }
    EXPECT_TRUE(LiveFor(absl::Seconds(2)).ok());
    EXPECT_EQ(a_.link->load().backlog != 0, with_frames_under_way);
    const absl::Status error = LiveFor(absl::Seconds(6));
    EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable) << error;
    TearDown();
  }
}

TEST_F(IwarpTest, APeerThatEndsIsNoticedAtOnce) {
  ConnectBoth();
  b_ = Side();
  const absl::Status error = a_.Poll().status();
  EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable) << error;
}

// siw ends so what was under way when its TCP connection broke.
TEST_F(IwarpTest, AConnectionThatTheNicGivesUpIsARailThatIsLost) {
  ConnectBoth();
  fake_->FailNextSend("fake0", IBV_WC_LOC_QP_OP_ERR);
  ASSERT_TRUE(a_.Send(0, 0, "x").value());
  const absl::Status error = a_.Poll().status();
  EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable) << error;
  EXPECT_THAT(std::string(error.message()), HasSubstr("TCP connection broke"));
}

// Also by one that only waits, and is woken for nothing else afterwards.
TEST_F(IwarpTest, WhoSleepsIsToldToo) {
  ConnectBoth();
  b_ = Side();
  EXPECT_EQ(a_.link->Arm(Wake::kAll).code(), absl::StatusCode::kUnavailable);
}

// A driver that waits in the call that dials until TCP gives up stops neither the link nor its end.
// The call then ends in an error, and another one succeeds.
TEST_F(IwarpTest, ADriverThatWaitsInItsCall) {
  for (const bool goes_away : {true, false}) {
    SetUp();
    fake_->cm().HoldConnects(true);
    OpenBoth();
    for (int i = 0; i < 1000; ++i) {
      for (const Side* side : {&a_, &b_}) side->link->Reconnect(fake_->Now()).IgnoreError();
      fake_->AdvanceTime(absl::Milliseconds(5));
      absl::SleepFor(absl::Microseconds(100));
    }
    EXPECT_FALSE(a_.link->connected());
    EXPECT_FALSE(b_.link->connected());
    if (goes_away) a_ = Side();
    fake_->cm().HoldConnects(false);
    if (!goes_away) {
      ASSERT_TRUE(WorkUntil([this] { return BothUp(); }).ok());
      PollUntilQuiet();
      ExpectBothWaysWork();
    }
    TearDown();
  }
}

TEST_F(IwarpTest, AGreetingThatWasOverlookedIsFollowedByMore) {
  fake_->cm().OverlookFirstMessages();
  ConnectBoth();
  ExpectBothWaysWork();
  EXPECT_EQ(fake_->cm().connections(), 1u) << "in the same attempt";
}

TEST_F(IwarpTest, TheErrorSaysWhatWentWrong) {
  OpenBoth();
  fake_->cm().HoldConnects(true);
  std::string errors;
  const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
  while (!absl::StrContains(errors, "cannot connect to 10.0.0.") && MonotonicNow() < deadline) {
    for (Side* side : {&a_, &b_}) {
      const absl::Status status = side->link->Reconnect(fake_->Now()).status();
      if (!status.ok()) absl::StrAppend(&errors, status.message(), "\n");
    }
    // Now and then the call is let go, and fails.
    fake_->cm().HoldConnects(false);
    fake_->cm().HoldConnects(true);
    fake_->AdvanceTime(absl::Microseconds(100));
    absl::SleepFor(absl::Microseconds(100));
  }
  fake_->cm().HoldConnects(false);
  EXPECT_THAT(errors, HasSubstr("cannot connect to 10.0.0."));
}

// The peer can read where it may write, and nothing else.
TEST_F(IwarpTest, MemoryHasNoMoreRightsThanItNeeds) {
  ConnectBoth();
  for (const FakeRegion& region : fake_->regions("fake0")) {
    const bool written = (region.access & IBV_ACCESS_REMOTE_WRITE) != 0;
    EXPECT_TRUE(written || (region.access & IBV_ACCESS_REMOTE_READ) == 0);
  }
}

}  // namespace
}  // namespace railhead::transport::verbs
