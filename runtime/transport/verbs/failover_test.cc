// SPDX-License-Identifier: Apache-2.0
//
// Links that are lost and come back, over fake NICs and real acceptors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/rails/peer.h"
#include "runtime/testing/exchange.h"
#include "runtime/testing/sleeper.h"
#include "runtime/transport/verbs/rails_for_test.h"
#include "runtime/transport/verbs/user_memory.h"
#include "runtime/transport/verbs/verbs_pair_for_test.h"

namespace railhead::transport::verbs {
namespace {

using railhead::testing::Sleeper;
using ::testing::HasSubstr;

class RecoveringLinkTest : public EveryNetworkTest {
 protected:
  void SetUp() override {
    VerbsPairTest::SetUp();
    ConnectBoth();
  }

  // Lets time pass, and both sides live through it: those that are lost work at a connection.
  void Live(absl::Duration time) {
    constexpr absl::Duration kStep = absl::Milliseconds(5);
    for (absl::Duration passed; passed < time; passed += kStep) {
      fake_->AdvanceTime(kStep);
      for (Side* side : {&a_, &b_}) {
        if (side->link->connected()) {
          side->Poll().IgnoreError();
        } else {
          side->link->Reconnect(fake_->Now()).IgnoreError();
        }
      }
    }
  }
  // Real sockets take real time, though not much.
  void LiveUntilBothAreUp() {
    const absl::Time deadline = MonotonicNow() + absl::Seconds(20);
    while (!BothUp() && MonotonicNow() < deadline) Live(absl::Milliseconds(5));
    ASSERT_TRUE(BothUp());
  }

  void ExpectBothWaysWork() {
    a_.received.clear();
    b_.received.clear();
    ASSERT_TRUE(*a_.Send(7, 0, "from a"));
    ASSERT_TRUE(*b_.Send(8, 0, "from b"));
    PollUntilQuiet();
    ASSERT_EQ(a_.received.size(), 1U);
    ASSERT_EQ(b_.received.size(), 1U);
    EXPECT_EQ(a_.received.front().second, "from b");
    EXPECT_EQ(b_.received.front().second, "from a");
  }
};

INSTANTIATE_TEST_SUITE_P(Networks, RecoveringLinkTest, ::testing::ValuesIn(kEveryWay), WayName);

// What only happens over RoCE and InfiniBand.
class RecoveringPathTest : public RecoveringLinkTest {};

INSTANTIATE_TEST_SUITE_P(Networks, RecoveringPathTest, ::testing::ValuesIn(kRoceWays), WayName);

TEST_P(RecoveringLinkTest, FramesCountUntilTheSinkHasTakenThem) {
  b_.accept = false;
  FrameHeader header = {1, 0};
  header.awaited = true;
  const std::string text = "x";
  const auto bytes = absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()), 1);
  ASSERT_TRUE(*a_.link->TrySend(header, bytes));
  PollUntilQuiet();
  EXPECT_EQ(a_.unacknowledged, 1U) << "the NIC has it, but nobody has taken it";
  b_.accept = true;
  PollUntilQuiet();
  EXPECT_EQ(a_.unacknowledged, 0U);
  EXPECT_TRUE(b_.received.front().first.awaited);
  EXPECT_FALSE(b_.received.front().first.repeated);
}

TEST_P(RecoveringLinkTest, APortThatWasDownComesBack) {
  for (int round = 0; round < 3; ++round) {
    fake_->SetPortState(round % 2 == 0 ? "fake0" : "fake1", IBV_PORT_DOWN);
    ASSERT_TRUE(*a_.Send(1, 0, "lost"));
    ASSERT_TRUE(*b_.Send(1, 0, "lost"));
    Live(absl::Seconds(8));
    EXPECT_FALSE(a_.link->connected());
    EXPECT_FALSE(b_.link->connected());
    EXPECT_TRUE(a_.link->Flushed());
    EXPECT_GE(a_.unacknowledged, 1U) << "when the connection was lost";
    EXPECT_EQ(a_.Poll().status().code(), absl::StatusCode::kUnavailable);
    fake_->SetPortState("fake0", IBV_PORT_ACTIVE);
    fake_->SetPortState("fake1", IBV_PORT_ACTIVE);
    LiveUntilBothAreUp();
    ExpectBothWaysWork();
  }
}

// The device tells of its port long before it gives up what it should send: nothing moves here, and
// less time passes than any of its timeouts.
TEST_P(RecoveringLinkTest, APortThatGoesDownIsALostConnectionAtOnce) {
  constexpr absl::Duration kSoon = absl::Milliseconds(20);
  for (Side* side : {&a_, &b_}) {
    const std::string device = side == &a_ ? "fake0" : "fake1";
    const auto wakes = [&] {
      side->link->Answer(fake_->Now());
      EXPECT_TRUE(side->link->Arm(Wake::kAll).ok());
      return Sleeper(*side->link).Wakes(0);
    };
    Live(kSoon);
    EXPECT_FALSE(wakes());
    fake_->SetPortState(device, IBV_PORT_DOWN);
    EXPECT_TRUE(wakes()) << "whoever sleeps";
    fake_->AdvanceTime(kSoon);
    const absl::Status error = side->Poll().status();
    EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(error.message()),
                HasSubstr("this side's port is DOWN: check its cable"));
    EXPECT_FALSE(side->link->connected());
    EXPECT_FALSE(wakes()) << "by what it has heard";
    fake_->SetPortState(device, IBV_PORT_ACTIVE);
    LiveUntilBothAreUp();
    ExpectBothWaysWork();
  }
}

// Nobody has noticed, and what was sent meanwhile is sent again by the NIC.
TEST_P(RecoveringLinkTest, APortThatIsUpAgainWhenSomebodyLooksWasNeverDown) {
  fake_->SetPortState("fake0", IBV_PORT_DOWN);
  fake_->SetPortState("fake0", IBV_PORT_ACTIVE);
  Live(absl::Seconds(1));
  EXPECT_TRUE(BothUp());
  ExpectBothWaysWork();
}

// All links of one port, whoever of them reads what the device tells.
TEST_P(RecoveringLinkTest, EveryLinkOfThePortLosesItsConnection) {
  const auto acceptor_a = OpenAcceptor();
  const auto acceptor_b = OpenAcceptor();
  const auto a = *OpenVerbsLink(*a_.device, acceptor_a, acceptor_b->Address(), "rank 2");
  const auto b = *OpenVerbsLink(*b_.device, acceptor_b, acceptor_a->Address(), "rank 3");
  const absl::Status connected = ConnectLinks(*fake_, *a, *b);
  ASSERT_TRUE(connected.ok()) << connected;
  fake_->SetPortState("fake0", IBV_PORT_DOWN);
  fake_->AdvanceTime(absl::Milliseconds(20));
  EXPECT_FALSE(a_.Poll().ok());
  EXPECT_FALSE(
      a->Poll([](const FrameHeader&, absl::Span<const std::byte>) { return true; }).moved.ok());
}

// Be it the side that dials, or the one that must knock.
TEST_P(RecoveringLinkTest, WhenOneSideLosesItTheOtherLearns) {
  for (Side* loser : {&a_, &b_, &a_, &b_}) {
    const absl::Time begin = fake_->Now();
    loser->link->Drop("the test says so");
    EXPECT_THAT(std::string(loser->Poll().status().message()), HasSubstr("the test says so"));
    LiveUntilBothAreUp();
    ExpectBothWaysWork();
    EXPECT_LT(fake_->Now() - begin, absl::Seconds(20));
    Live(absl::Seconds(2));
    EXPECT_TRUE(BothUp()) << "and it stays";
  }
}

// What was written into the slots of an earlier connection is not seen in the next one.
TEST_P(RecoveringLinkTest, NothingOfTheOldConnectionArrivesInTheNew) {
  b_.accept = false;
  for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(*a_.Send(i, 0, std::string(5000, 'o')));
  Live(absl::Milliseconds(10));
  b_.link->Drop("with three frames undelivered");
  b_.accept = true;
  LiveUntilBothAreUp();
  ExpectBothWaysWork();
}

// A frame that one queue pair could not bring to the peer, while those of others arrived, is still
// tried when the next connection writes into the same slots.
TEST_P(RecoveringPathTest, WhatAQueuePairStillHasDoesNotLandInTheNextConnection) {
  fake_->LosePath("fake0", qps() - 1U, true);
  for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(*a_.Send(i, 0, std::string(5000, 'o')));
  ASSERT_GT(fake_->undelivered("fake0"), 0U);
  b_.link->Drop("with a part of the frames undelivered");
  // The path works again before its sender has given up.
  fake_->LosePath("fake0", qps() - 1U, false);
  b_.received.clear();
  LiveUntilBothAreUp();
  EXPECT_THAT(b_.received, ::testing::IsEmpty());
  b_.accept = false;
  for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(*a_.Send(i, 1, std::string(5000, 'n')));
  Live(absl::Seconds(3));
  b_.accept = true;
  PollUntilQuiet();
  ASSERT_EQ(b_.received.size(), 8U);
  for (uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(b_.received[i].first.transfer, i);
    EXPECT_EQ(b_.received[i].second, std::string(5000, 'n'));
  }
}

// One path of several that is lost is a lost connection; the next one has other queue pairs, and so
// other paths.
TEST_P(RecoveringPathTest, APathThatIsLostForGood) {
  fake_->LosePath("fake0", qps() - 1U, true);
  Live(absl::Seconds(5));  // it waits, and learns it by its probes
  LiveUntilBothAreUp();
  ExpectBothWaysWork();
  EXPECT_EQ(fake_->pairs("fake0").size(), size_t{qps()});
}

// Time for which a schedule may run, on the fabric's clock.
constexpr absl::Duration kLongest = absl::Seconds(3000);

class VerbsFailoverTest : public ::testing::TestWithParam<Network> {};

INSTANTIATE_TEST_SUITE_P(Networks, VerbsFailoverTest,
                         ::testing::Values(Network::kRoce, Network::kIwarp), NetworkName);

// Everything that a NIC and a network can do to two peers with several rails, at random: every
// message must arrive once and right, whatever happens, and everything must end. Half of them are
// sent from known memory, which may be forgotten at any moment. Each side of a rail has as many
// queue pairs as it likes. RAILHEAD_SCHEDULES says how many schedules; each is repeated by its
// number.
TEST_P(VerbsFailoverTest, RandomFaultsChangeNoResult) {
  int schedules = 60;
  if (const char* wanted = std::getenv("RAILHEAD_SCHEDULES"); wanted != nullptr) {
    ASSERT_TRUE(absl::SimpleAtoi(wanted, &schedules));
  }
  uint64_t failovers = 0;
  uint64_t returns = 0;
  uint64_t gathered = 0;
  uint64_t kept = 0;
  for (int schedule = 0; schedule < schedules; ++schedule) {
    std::mt19937 random(static_cast<uint32_t>(schedule));
    const size_t rails = 1 + random() % 3;
    const auto fake = std::make_shared<FakeVerbs>(DevicesOfRails(GetParam(), rails));
    {
      // Connected before anything is wrong.
      RailsOfTwoSides sides = ConnectRails(fake, rails, [&random] {
        VerbsSettings settings;
        settings.qps_per_rail = static_cast<uint8_t>(1 + random() % kMostQpsPerRail);
        return settings;
      });
      ASSERT_FALSE(HasFailure()) << "schedule " << schedule;
      if (random() % 2 == 0) fake->MoveAtRandom(random());
      const Logger quiet(LogLevel::kError, "");
      rails::Peer a("rank 1", std::move(sides.rails[0]), quiet);
      rails::Peer b("rank 0", std::move(sides.rails[1]), quiet);
      railhead::testing::Exchange exchange(random, a, b, 20 + random() % 60);
      std::vector<std::shared_ptr<const void>> known;
      for (size_t m = 0; m < exchange.messages(); ++m) {
        for (const size_t side : {0, 1}) {
          for (size_t k = 0; random() % 2 == 0 && k < rails; ++k) {
            const auto& memory = sides.devices.at(side)[k]->memory();
            known.push_back(memory->Know(exchange.Sent(side, m), nullptr, quiet));
          }
        }
      }
      const size_t ahead = 1 + random() % 8;
      const std::vector<ibv_wc_status> troubles = {IBV_WC_RETRY_EXC_ERR, IBV_WC_REM_ACCESS_ERR,
                                                   IBV_WC_LOC_QP_OP_ERR};
      const uint32_t calm = 12 + random() % 60;  // steps between misfortunes
      const absl::Time begin = fake->Now();
      while (!exchange.Done()) {
        ASSERT_LT(fake->Now() - begin, kLongest)
            << "schedule " << schedule << ": " << a.DescribeProgress() << "\n"
            << b.DescribeProgress();
        const std::string device = absl::StrCat(random() % 2 == 0 ? "a" : "b", random() % rails);
        if (random() % calm == 0) {
          switch (random() % 6) {
            case 0:
            case 1:
              fake->SetPortState(device, IBV_PORT_DOWN);
              break;
            case 2:
              fake->FailNextSend(device, troubles[random() % troubles.size()]);
              break;
            case 3:
              fake->HoldCompletions(device, true);
              break;
            case 4:
              (random() % 2 == 0 ? a : b).link(random() % rails).Drop("the test says so");
              break;
            default:
              fake->LosePath(device, random() % kMostQpsPerRail, true);
              break;
          }
        }
        if (random() % 4 == 0 && !known.empty()) known[random() % known.size()].reset();
        // Whatever was harmed gets well again.
        if (random() % (2 * calm) == 0) {
          Heal(*fake, rails);
        }
        fake->AdvanceTime(random() % 64 == 0 ? absl::Milliseconds(100)
                                             : absl::Microseconds(random() % 2000));
        for (const size_t side : {0, 1}) {
          exchange.Step(side, ahead, random() % 4 == 0);
          rails::Peer& peer = side == 0 ? a : b;
          if (random() % 4 == 0) kept += peer.KeepUnacknowledged() ? 1 : 0;
          const absl::StatusOr<bool> polled = peer.Poll(fake->Now());
          ASSERT_TRUE(polled.ok()) << "schedule " << schedule << ": " << polled.status();
          // As before a sleep.
          const bool sleeps = !*polled && random() % 4 == 0;
          ASSERT_TRUE(!sleeps || (peer.Acknowledge().ok() && peer.Arm(transport::Wake::kAll).ok()));
        }
      }
      ASSERT_EQ(exchange.Wrong(), 0U) << "schedule " << schedule;
      ASSERT_EQ(fake->violations(), std::vector<std::string>()) << "schedule " << schedule;
      for (size_t k = 0; k < rails; ++k) {
        failovers += a.rail_health(k).failovers;
        returns += a.rail_health(k).returns;
      }
    }
    gathered += fake->gathered_sends();
    // Who helped to connect, and was not waited for, may still be at work.
    const absl::Time patience = MonotonicNow() + absl::Seconds(20);
    while (fake->open_objects() > 0 && MonotonicNow() < patience)
      absl::SleepFor(absl::Milliseconds(1));
    ASSERT_EQ(fake->open_objects(), 0U) << "schedule " << schedule;
  }
  EXPECT_GT(gathered, static_cast<uint64_t>(schedules)) << "frames that were not copied";
  EXPECT_GT(kept, static_cast<uint64_t>(schedules) / 2) << "transfers that nobody waited for";
  EXPECT_GT(failovers, static_cast<uint64_t>(schedules) / 4);
  EXPECT_GT(returns, static_cast<uint64_t>(schedules) / 8);
}

}  // namespace
}  // namespace railhead::transport::verbs
