// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/page_answer.h"

#include <gtest/gtest.h>

#include "operator/verdict/judge.h"

namespace railhead::op {
namespace {

using verdict::kSilence;
using verdict::RuntimeReport;

constexpr absl::Time kBegin = absl::UnixEpoch();

RuntimeReport ReportOf(int rank) {
  RuntimeReport report;
  report.ranks.emplace_back().rank = rank;
  return report;
}

TEST(PageRecordTest, SilenceIsWhatLiesBetweenQuestionsAndNewsOnce) {
  PageRecord record;
  EXPECT_FALSE(record.Missed(kBegin));
  // Nobody has asked for an hour: that is no silence.
  EXPECT_EQ(record.At(kBegin + absl::Hours(1)).silence, absl::ZeroDuration());
  EXPECT_FALSE(record.Missed(kBegin + absl::Seconds(59)));
  EXPECT_EQ(record.At(kBegin + absl::Hours(1)).silence, absl::Seconds(59));
  EXPECT_TRUE(record.Missed(kBegin + kSilence));
  EXPECT_FALSE(record.Missed(kBegin + kSilence + absl::Seconds(15)));
  EXPECT_FALSE(record.At(kBegin).heard);
}

TEST(PageRecordTest, AnAnswerIsNewsWhereItSaysAnother) {
  PageRecord record;
  EXPECT_TRUE(record.Answered(ReportOf(1), kBegin));
  EXPECT_FALSE(record.Answered(ReportOf(1), kBegin + absl::Seconds(10)));
  PageAnswer answer = record.At(kBegin + absl::Seconds(12));
  EXPECT_EQ(answer.unchanged, absl::Seconds(12));
  EXPECT_EQ(answer.age, absl::Seconds(2));
  EXPECT_EQ(*answer.report, ReportOf(1));
  EXPECT_TRUE(record.Answered(ReportOf(2), kBegin + absl::Seconds(20)));
  answer = record.At(kBegin + absl::Seconds(21));
  EXPECT_EQ(answer.unchanged, absl::Seconds(1));
  EXPECT_EQ(*answer.report, ReportOf(2));
}

TEST(PageRecordTest, APageThatNamesNoRankIsAQuestionInVain) {
  PageRecord record;
  EXPECT_FALSE(record.Answered({}, kBegin));
  EXPECT_FALSE(record.At(kBegin).heard);
  EXPECT_TRUE(record.Answered({}, kBegin + kSilence));
  EXPECT_EQ(record.At(kBegin + kSilence).silence, kSilence);
  EXPECT_TRUE(record.Answered(ReportOf(1), kBegin + absl::Minutes(2)));
  EXPECT_TRUE(record.Answered({}, kBegin + absl::Minutes(3)));  // it has ended
  EXPECT_EQ(record.At(kBegin + absl::Minutes(3)).report, nullptr);
  EXPECT_TRUE(record.At(kBegin + absl::Minutes(3)).heard);
}

TEST(PageRecordTest, WhatRanksSaidOfTheirStartStays) {
  RuntimeReport report = ReportOf(1);
  report.ranks[0].start = {4, "verbs", "auto", "warn", "", "train-1"};
  PageRecord record;
  record.Answered(report, kBegin);
  EXPECT_EQ(record.At(kBegin).learned, record.At(kBegin).report);
  record.Answered({}, kBegin + absl::Seconds(10));
  EXPECT_EQ(*record.At(kBegin).learned, report);
  for (int i = 2; i < 9; ++i) record.Missed(kBegin + absl::Seconds(10 * i));
  EXPECT_EQ(*record.At(kBegin).learned, report);
}

TEST(PageRecordTest, WhoHasAnsweredMayMissTwoQuestions) {
  PageRecord record;
  record.Answered(ReportOf(1), kBegin);
  EXPECT_FALSE(record.Missed(kBegin + absl::Seconds(15)));
  EXPECT_FALSE(record.Missed(kBegin + absl::Seconds(30)));
  EXPECT_NE(record.At(kBegin + absl::Seconds(31)).report, nullptr);
  EXPECT_TRUE(record.Missed(kBegin + absl::Seconds(45)));
  const PageAnswer answer = record.At(kBegin + absl::Seconds(46));
  EXPECT_EQ(answer.report, nullptr);
  EXPECT_TRUE(answer.heard);
  EXPECT_EQ(answer.silence, absl::Seconds(30));
  // It is back, and silence begins anew.
  EXPECT_TRUE(record.Answered(ReportOf(1), kBegin + absl::Seconds(60)));
  EXPECT_FALSE(record.Missed(kBegin + absl::Seconds(200)));
  EXPECT_FALSE(record.Missed(kBegin + absl::Seconds(201)));
}

}  // namespace
}  // namespace railhead::op
