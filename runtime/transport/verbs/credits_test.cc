// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/credits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <set>
#include <vector>

namespace railhead::transport::verbs {
namespace {

// What the wire says after `frames` frames.
uint32_t Count(uint32_t frames) {
  return static_cast<uint32_t>(kFirstFrame + frames) & kCounterMask;
}

TEST(SendCredits, AsManyAsSlots) {
  SendCredits credits(4, 1);
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(credits.available());
    EXPECT_EQ(credits.Take(), kFirstFrame + i);
  }
  EXPECT_FALSE(credits.available());
  EXPECT_TRUE(credits.Report(Count(1), 0));
  EXPECT_TRUE(credits.available());
}

TEST(SendCredits, ImpossibleReportsAreRefused) {
  SendCredits credits(4, 1);
  EXPECT_TRUE(credits.Report(Count(0), 0));
  EXPECT_FALSE(credits.Report(Count(1), 0));
  credits.Take();
  credits.Take();
  EXPECT_TRUE(credits.Report(Count(2), 0));
  EXPECT_FALSE(credits.Report(Count(1), 0));  // a count never goes back
  EXPECT_FALSE(credits.Report(Count(3), 0));
}

TEST(ReceiveCredits, OnlyTheNextFrameAndOnlyWithACredit) {
  ReceiveCredits credits(4, 1);
  EXPECT_EQ(credits.Arrive(Count(1), 0), std::nullopt);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(credits.Arrive(Count(i), 0), kFirstFrame + i);
  EXPECT_EQ(credits.Arrive(Count(4), 0), std::nullopt);
  credits.Consume();
  EXPECT_EQ(credits.Arrive(Count(4), 0), std::nullopt);  // consumed, but the peer has not been told
  credits.TakeReport();
  EXPECT_EQ(credits.Arrive(Count(4), 0), kFirstFrame + 4);
}

TEST(ReceiveCredits, AReportIsDueForAQuarterOrForAStarvingPeer) {
  ReceiveCredits credits(16, 1);
  for (uint32_t i = 0; i < 5; ++i) ASSERT_TRUE(credits.Arrive(Count(i), 0).has_value());
  for (int i = 0; i < 3; ++i) credits.Consume();
  EXPECT_FALSE(credits.ReportDue());
  credits.Consume();
  EXPECT_TRUE(credits.ReportDue());
  credits.TakeReport();
  EXPECT_FALSE(credits.ReportDue());

  credits.Consume();
  EXPECT_FALSE(credits.ReportDue());
  for (uint32_t i = 5; i < 20; ++i) ASSERT_TRUE(credits.Arrive(Count(i), 0).has_value());
  EXPECT_TRUE(credits.ReportDue());  // one is owed, and the peer can send no more
}

TEST(SendCredits, OnALaneCountsNeverGoBackButAnotherMayBeLate) {
  SendCredits credits(8, 3);
  for (int i = 0; i < 6; ++i) credits.Take();
  EXPECT_TRUE(credits.Report(Count(4), 1));
  EXPECT_EQ(credits.outstanding(), 2U);
  EXPECT_TRUE(credits.Report(Count(2), 0));
  EXPECT_EQ(credits.outstanding(), 2U) << "older than what is known";
  EXPECT_FALSE(credits.Report(Count(1), 0));
  EXPECT_FALSE(credits.Report(Count(3), 1));
  EXPECT_FALSE(credits.Report(Count(7), 2));
  EXPECT_TRUE(credits.Report(Count(6), 2));
  EXPECT_EQ(credits.outstanding(), 0U);
}

TEST(ReceiveCredits, EachLaneBringsEveryNthFrame) {
  ReceiveCredits credits(8, 3);
  EXPECT_EQ(credits.Arrive(Count(0), 1), std::nullopt) << "the first lane's";
  EXPECT_EQ(credits.Arrive(Count(1), 1), kFirstFrame + 1);
  EXPECT_EQ(credits.Arrive(Count(4), 1), kFirstFrame + 4);
  EXPECT_EQ(credits.Arrive(Count(5), 2), std::nullopt) << "before the lane's frame 2";
  EXPECT_EQ(credits.arrived(), kFirstFrame);
  EXPECT_FALSE(credits.pending());
  EXPECT_EQ(credits.Arrive(Count(0), 0), kFirstFrame);
  EXPECT_EQ(credits.arrived(), kFirstFrame + 2);
  EXPECT_EQ(credits.Arrive(Count(7), 1), kFirstFrame + 7);
  EXPECT_EQ(credits.Arrive(Count(10), 1), std::nullopt) << "without a credit";
  EXPECT_EQ(credits.Arrive(Count(2), 2), kFirstFrame + 2);
  EXPECT_EQ(credits.arrived(), kFirstFrame + 3);
}

// Random schedules, across the wrap of the counter on the wire, with lanes that are late as they
// like: the sender never overruns the receiver, frames come out in their order, each once, and the
// sender is never stuck when the receiver has consumed everything.
TEST(Credits, NeverStuckNeverOverrunAcrossTheWrap) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const uint32_t slots = 4u << (seed % 3);
    const size_t lanes = 1 + random() % 8;
    SendCredits sender(slots, lanes);
    ReceiveCredits receiver(slots, lanes);
    std::vector<std::deque<uint32_t>> frames(lanes);
    std::vector<std::deque<uint32_t>> reports(lanes);
    std::set<uint64_t> slots_in_use;
    uint64_t sent = 0;
    const auto none = [](const std::vector<std::deque<uint32_t>>& all) {
      return std::all_of(all.begin(), all.end(), [](const auto& one) { return one.empty(); });
    };
    for (int step = 0; step < 4000; ++step) {
      const size_t lane = random() % lanes;
      switch (random() % 4) {
        case 0:
          if (sender.available()) {
            const uint64_t number = sender.Take();
            ASSERT_TRUE(slots_in_use.insert(number % slots).second) << "overrun";
            frames[sent++ % lanes].push_back(static_cast<uint32_t>(number) & kCounterMask);
          }
          break;
        case 1:
          if (!frames[lane].empty()) {
            const std::optional<uint64_t> number = receiver.Arrive(frames[lane].front(), lane);
            ASSERT_TRUE(number.has_value());
            ASSERT_EQ(*number & kCounterMask, frames[lane].front());
            frames[lane].pop_front();
          }
          break;
        case 2:
          if (receiver.pending()) {
            ASSERT_EQ(slots_in_use.erase(receiver.consumed() % slots), 1U);
            receiver.Consume();
          }
          if (receiver.ReportDue()) {
            reports[lane].push_back(static_cast<uint32_t>(receiver.TakeReport()) & kCounterMask);
          }
          break;
        default:
          if (!reports[lane].empty()) {
            ASSERT_TRUE(sender.Report(reports[lane].front(), lane));
            reports[lane].pop_front();
          }
      }
      // Nothing is taken that has not arrived.
      for (const std::deque<uint32_t>& late : frames) {
        if (late.empty()) continue;
        ASSERT_LT((late.front() - receiver.arrived()) & kCounterMask, slots);
      }
      if (none(frames) && none(reports) && !receiver.pending() && !receiver.ReportDue()) {
        ASSERT_TRUE(sender.available());
      }
    }
    ASSERT_GT(sent, 100u);
  }
}

}  // namespace
}  // namespace railhead::transport::verbs
