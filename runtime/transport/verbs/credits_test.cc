// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/credits.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace railhead::transport::verbs {
namespace {

// What the wire says after `frames` frames.
uint32_t Count(uint32_t frames) {
  return static_cast<uint32_t>(kFirstFrame + frames) & kCounterMask;
}

TEST(SendCredits, AsManyAsSlots) {
  SendCredits credits(4);
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(credits.available());
    EXPECT_EQ(credits.Take(), kFirstFrame + i);
  }
  EXPECT_FALSE(credits.available());
  EXPECT_TRUE(credits.Report(Count(1)));
  EXPECT_TRUE(credits.available());
}

TEST(SendCredits, ImpossibleReportsAreRefused) {
  SendCredits credits(4);
  EXPECT_TRUE(credits.Report(Count(0)));
  EXPECT_FALSE(credits.Report(Count(1)));
  credits.Take();
  credits.Take();
  EXPECT_TRUE(credits.Report(Count(2)));
  EXPECT_FALSE(credits.Report(Count(1)));  // a count never goes back
  EXPECT_FALSE(credits.Report(Count(3)));
}

TEST(ReceiveCredits, OnlyTheNextFrameAndOnlyWithACredit) {
  ReceiveCredits credits(4);
  EXPECT_FALSE(credits.Arrive(Count(1)));
  for (uint32_t i = 0; i < 4; ++i) EXPECT_TRUE(credits.Arrive(Count(i)));
  EXPECT_FALSE(credits.Arrive(Count(4)));
  credits.Consume();
  EXPECT_FALSE(credits.Arrive(Count(4)));  // consumed, but the peer has not been told
  credits.TakeReport();
  EXPECT_TRUE(credits.Arrive(Count(4)));
}

TEST(ReceiveCredits, AReportIsDueForAQuarterOrForAStarvingPeer) {
  ReceiveCredits credits(16);
  for (uint32_t i = 0; i < 5; ++i) ASSERT_TRUE(credits.Arrive(Count(i)));
  for (int i = 0; i < 3; ++i) credits.Consume();
  EXPECT_FALSE(credits.ReportDue());
  credits.Consume();
  EXPECT_TRUE(credits.ReportDue());
  credits.TakeReport();
  EXPECT_FALSE(credits.ReportDue());

  credits.Consume();
  EXPECT_FALSE(credits.ReportDue());
  for (uint32_t i = 5; i < 20; ++i) ASSERT_TRUE(credits.Arrive(Count(i)));
  EXPECT_TRUE(credits.ReportDue());  // one is owed, and the peer can send no more
}

// Random schedules, across the wrap of the counter on the wire: the sender never overruns the
// receiver, and is never stuck when the receiver has consumed everything.
TEST(Credits, NeverStuckNeverOverrunAcrossTheWrap) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const uint32_t slots = 4u << (seed % 3);
    SendCredits sender(slots);
    ReceiveCredits receiver(slots);
    std::deque<uint32_t> frames;
    std::deque<uint32_t> reports;
    uint64_t sent = 0;
    for (int step = 0; step < 2000; ++step) {
      switch (random() % 4) {
        case 0:
          if (sender.available()) {
            frames.push_back(static_cast<uint32_t>(sender.Take()) & kCounterMask);
            ++sent;
          }
          break;
        case 1:
          if (!frames.empty()) {
            ASSERT_TRUE(receiver.Arrive(frames.front()));
            frames.pop_front();
          }
          break;
        case 2:
          if (receiver.pending()) receiver.Consume();
          if (receiver.ReportDue()) {
            reports.push_back(static_cast<uint32_t>(receiver.TakeReport()) & kCounterMask);
          }
          break;
        default:
          if (!reports.empty()) {
            ASSERT_TRUE(sender.Report(reports.front()));
            reports.pop_front();
          }
      }
      if (frames.empty() && reports.empty() && !receiver.pending() && !receiver.ReportDue()) {
        ASSERT_TRUE(sender.available());
      }
    }
    ASSERT_GT(sent, 100u);
  }
}

}  // namespace
}  // namespace railhead::transport::verbs
