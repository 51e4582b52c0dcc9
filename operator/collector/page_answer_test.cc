// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/page_answer.h"

#include <gtest/gtest.h>

#include "operator/verdict/judge.h"

namespace railhead::op {
namespace {

using verdict::kSilence;
using verdict::RuntimeReport;

constexpr absl::Time kFirst = absl::UnixEpoch();

RuntimeReport RuntimeReportOf(int rank) {
  RuntimeReport report;
  report.ranks.emplace_back().rank = rank;
  return report;
}

TEST(PageRecordTest, SilenceIsWhatLiesBetweenQuestionsAndNewsOnce) {
  PageRecord record;
  EXPECT_FALSE(record.Missed(kFirst));
  // Nobody has asked for an hour: that is no silence.
  EXPECT_EQ(record.At(kFirst + absl::Hours(1)).silence, absl::ZeroDuration());
  EXPECT_FALSE(record.Missed(kFirst + absl::Seconds(59)));
  EXPECT_EQ(record.At(kFirst + absl::Hours(1)).silence, absl::Seconds(59));
  EXPECT_TRUE(record.Missed(kFirst + kSilence));
  EXPECT_FALSE(record.Missed(kFirst + kSilence + absl::Seconds(15)));
  EXPECT_FALSE(record.At(kFirst).heard);
}

TEST(PageRecordTest, AnAnswerIsNewsWhereItSaysAnother) {
  PageRecord record;
  EXPECT_TRUE(record.Answered(RuntimeReportOf(1), kFirst));
  EXPECT_FALSE(record.Answered(RuntimeReportOf(1), kFirst + absl::Seconds(10)));
  PageAnswer answer = record.At(kFirst + absl::Seconds(12));
  EXPECT_EQ(answer.unchanged, absl::Seconds(12));
  EXPECT_EQ(answer.age, absl::Seconds(2));
  EXPECT_EQ(*answer.report, RuntimeReportOf(1));
  EXPECT_TRUE(record.Answered(RuntimeReportOf(2), kFirst + absl::Seconds(20)));
  answer = record.At(kFirst + absl::Seconds(21));
  EXPECT_EQ(answer.unchanged, absl::Seconds(1));
  EXPECT_EQ(*answer.report, RuntimeReportOf(2));
}

TEST(PageRecordTest, APageThatNamesNoRankIsAQuestionInVain) {
  PageRecord record;
  EXPECT_FALSE(record.Answered({}, kFirst));
  EXPECT_FALSE(record.At(kFirst).heard);
  EXPECT_TRUE(record.Answered({}, kFirst + kSilence));
  EXPECT_EQ(record.At(kFirst + kSilence).silence, kSilence);
  EXPECT_TRUE(record.Answered(RuntimeReportOf(1), kFirst + absl::Minutes(2)));
  EXPECT_TRUE(record.Answered({}, kFirst + absl::Minutes(3)));  // it has ended
  EXPECT_EQ(record.At(kFirst + absl::Minutes(3)).report, nullptr);
  EXPECT_TRUE(record.At(kFirst + absl::Minutes(3)).heard);
}

TEST(PageRecordTest, WhatRanksSaidOfTheirStartStays) {
  RuntimeReport report = RuntimeReportOf(1);
  report.ranks[0].start = {4, "verbs", "auto", "warn", "", "train-1"};
  PageRecord record;
  record.Answered(report, kFirst);
  EXPECT_EQ(record.At(kFirst).learned, record.At(kFirst).report);
  record.Answered({}, kFirst + absl::Seconds(10));
  EXPECT_EQ(*record.At(kFirst).learned, report);
  for (int i = 2; i < 9; ++i) record.Missed(kFirst + absl::Seconds(10 * i));
  EXPECT_EQ(*record.At(kFirst).learned, report);
}

TEST(PageRecordTest, WhoHasAnsweredMayMissTwoQuestions) {
  PageRecord record;
  record.Answered(RuntimeReportOf(1), kFirst);
  EXPECT_FALSE(record.Missed(kFirst + absl::Seconds(15)));
  EXPECT_FALSE(record.Missed(kFirst + absl::Seconds(30)));
  EXPECT_NE(record.At(kFirst + absl::Seconds(31)).report, nullptr);
  EXPECT_TRUE(record.Missed(kFirst + absl::Seconds(45)));
  const PageAnswer answer = record.At(kFirst + absl::Seconds(46));
  EXPECT_EQ(answer.report, nullptr);
  EXPECT_TRUE(answer.heard);
  EXPECT_EQ(answer.silence, absl::Seconds(30));
  // It is back, and silence begins anew.
  EXPECT_TRUE(record.Answered(RuntimeReportOf(1), kFirst + absl::Seconds(60)));
  EXPECT_FALSE(record.Missed(kFirst + absl::Seconds(200)));
  EXPECT_FALSE(record.Missed(kFirst + absl::Seconds(201)));
}

}  // namespace
}  // namespace railhead::op
