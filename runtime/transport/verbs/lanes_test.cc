// SPDX-License-Identifier: Apache-2.0
//
// Connections with several queue pairs: whose paths are of different length, and whose sides want
// different numbers of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/transport/verbs/verbs_pair_for_test.h"

namespace railhead::transport::verbs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class LanesTest : public VerbsPairTest {
 protected:
  void ConnectWith(uint8_t a, uint8_t b) {
    a_.settings.qps_per_rail = a;
    b_.settings.qps_per_rail = b;
    ConnectBoth();
  }
  // More than the NIC's timeout, after which it repeats what was lost.
  void Repeat() {
    fake_->AdvanceTime(absl::Milliseconds(200));
    PollUntilQuiet();
  }
  void ExpectInOrder(const Side& side, uint64_t frames) {
    ASSERT_EQ(side.received.size(), frames);
    for (uint64_t i = 0; i < frames; ++i) {
      EXPECT_EQ(side.received[i].first.offset, i);
      EXPECT_EQ(side.received[i].second, absl::StrCat("frame ", i));
    }
  }
  absl::StatusOr<bool> SendNumbered(Side& side, uint64_t number) {
    return side.Send(0, number, absl::StrCat("frame ", number));
  }
};

TEST_F(LanesTest, BothSidesUseTheSmallerNumber) {
  for (const auto& [a, b] : {std::pair<uint8_t, uint8_t>{1, 1}, {1, 8}, {4, 2}, {3, 5}, {8, 8}}) {
    SetUp();
    ConnectWith(a, b);
    const size_t both = std::min(a, b);
    EXPECT_THAT(fake_->pairs("fake0"), SizeIs(both));
    EXPECT_THAT(fake_->pairs("fake1"), SizeIs(both));
    uint64_t sent = 0;
    for (int round = 0; round < 10; ++round) {
      while (SendNumbered(a_, sent).value()) {
        ASSERT_TRUE(SendNumbered(b_, sent).value());
        ++sent;
      }
      PollUntilQuiet();
    }
    EXPECT_GT(sent, 100U);
    ExpectInOrder(a_, sent);
    ExpectInOrder(b_, sent);
    EXPECT_EQ(fake_->receiver_not_ready(), 0U);
    TearDown();
  }
}

TEST_F(LanesTest, OverIwarpThereIsOne) {
  Make({IwarpDevice("fake0", "10.0.0.1"), IwarpDevice("fake1", "10.0.0.2")});
  a_.settings.qps_per_rail = b_.settings.qps_per_rail = 4;
  ConnectBoth();
  EXPECT_THAT(fake_->pairs("fake0"), SizeIs(1));
  EXPECT_THAT(fake_->pairs("fake1"), SizeIs(1));
}

// Packet numbers, like the numbers of pairs, are those of both sides: else the fake would lose all.
TEST_F(LanesTest, OnlyTheFirstIsGreetedOver) {
  ConnectWith(1, 1);
  const uint64_t with_one = fake_->messages();
  TearDown();
  SetUp();
  ConnectWith(8, 8);
  EXPECT_EQ(fake_->messages(), with_one);
}

// Frame k goes over pair k modulo their number: when one path is lost, what comes after it arrives,
// and waits for it.
TEST_F(LanesTest, FramesTakeTurnsAndArriveInTheirOrder) {
  for (const uint8_t qps : {2, 3, 4, 8}) {
    for (uint8_t slow = 0; slow < qps; ++slow) {
      SetUp();
      ConnectWith(qps, qps);
      fake_->LosePath("fake0", slow, true);
      const uint64_t before = fake_->messages();
      for (uint64_t i = 0; i < 16; ++i) ASSERT_TRUE(SendNumbered(a_, i).value());
      const uint64_t stuck = fake_->undelivered("fake0");
      EXPECT_EQ(stuck, (16U - slow + qps - 1) / qps);
      EXPECT_EQ(fake_->messages() - before, 16 - stuck);
      PollUntilQuiet();
      ExpectInOrder(b_, slow);
      EXPECT_NE(a_.link->load().backlog, 0U);
      fake_->LosePath("fake0", slow, false);
      Repeat();
      ExpectInOrder(b_, 16);
      EXPECT_EQ(a_.link->load().backlog, 0U);
      TearDown();
    }
  }
}

// What may be ahead of a lost path is bounded by the credits, be the sender as eager as it may.
TEST_F(LanesTest, CreditsBoundWhatComesEarly) {
  for (const uint8_t qps : {2, 4}) {
    SetUp();
    ConnectWith(qps, qps);
    fake_->LosePath("fake0", 1, true);
    uint64_t sent = 0;
    for (int round = 0; round < 50; ++round) {
      while (SendNumbered(a_, sent).value()) ++sent;
      PollUntilQuiet();
    }
    // The frame before the lost path was taken, but that is not worth a report.
    EXPECT_EQ(sent, 16U);
    ExpectInOrder(b_, 1);
    fake_->LosePath("fake0", 1, false);
    Repeat();
    ExpectInOrder(b_, sent);
    while (SendNumbered(a_, sent).value()) ++sent;
    EXPECT_GT(sent, 24U);
    PollUntilQuiet();
    ExpectInOrder(b_, sent);
    EXPECT_EQ(fake_->receiver_not_ready(), 0U);
    TearDown();
  }
}

// No more than four large frames on the wire, whichever of them arrive first: those that have, make
// room for others.
TEST_F(LanesTest, WhatHasArrivedIsNotOnTheWire) {
  ConnectWith(4, 4);
  fake_->LosePath("fake0", 0, true);
  const std::string large(a_.link->max_payload(), 'x');
  uint64_t sent = 0;
  for (int round = 0; round < 50; ++round) {
    while (a_.Send(0, sent, large).value()) ++sent;
    PollUntilQuiet();
  }
  EXPECT_EQ(a_.link->load().backlog, 4 * large.size());
  EXPECT_EQ(fake_->undelivered("fake0"), 4U);
  EXPECT_EQ(sent, 13U) << "0, 4, 8 and 12 are";
  EXPECT_EQ(a_.link->load().delivered, 9 * large.size());
  fake_->LosePath("fake0", 0, false);
  Repeat();
  EXPECT_EQ(a_.link->load().backlog, 0U);
  EXPECT_EQ(b_.received.size(), 13U);
}

// A report that was late on its path says less than is known by then, which harms nothing.
TEST_F(LanesTest, ALateReportIsNoNews) {
  ConnectWith(2, 2);
  ASSERT_TRUE(SendNumbered(b_, 0).value());  // so that the next one takes the second path
  PollUntilQuiet();
  fake_->LosePath("fake1", 1, true);
  ASSERT_TRUE(SendNumbered(b_, 1).value());  // says that nothing was taken
  for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(SendNumbered(a_, i).value());
  PollUntilQuiet();
  EXPECT_EQ(a_.unacknowledged, 0U);
  fake_->LosePath("fake1", 1, false);
  Repeat();
  EXPECT_EQ(a_.unacknowledged, 0U);
  ExpectInOrder(a_, 2);
  ExpectInOrder(b_, 8);
}

TEST_F(LanesTest, AnErrorOfOneIsTheEndAndIsNamed) {
  ConnectWith(4, 4);
  fake_->LosePath("fake0", 2, true);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(SendNumbered(a_, i).value());
  absl::Status error;
  for (int i = 0; i < 40 && error.ok(); ++i) {
    fake_->AdvanceTime(absl::Milliseconds(50));
    error = a_.Poll().status();
  }
  EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(error.message()),
              AllOf(HasSubstr("rail 0, device fake0 port 1, peer rank 1 at 10.0.0.2"),
                    HasSubstr("send on queue pair 3 of 4 failed"),
                    HasSubstr("transport retry counter exceeded")));
  EXPECT_EQ(a_.Send(0, 4, "x").status(), error);
}

// Every path is asked for a sign of life, also one that has carried nothing.
TEST_F(LanesTest, ALostPathIsNoticedByWhoOnlyWaits) {
  for (const size_t lost : {0, 3}) {
    SetUp();
    ConnectWith(4, 4);
    fake_->LosePath("fake0", lost, true);
    absl::Status error;
    for (int i = 0; i < 80 && error.ok(); ++i) {
      fake_->AdvanceTime(absl::Milliseconds(50));
      error = a_.Poll().status();
    }
    EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable) << error;
    EXPECT_THAT(std::string(error.message()),
                HasSubstr(absl::StrCat("queue pair ", lost + 1, " of 4")));
    TearDown();
  }
}

}  // namespace
}  // namespace railhead::transport::verbs
