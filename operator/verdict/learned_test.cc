// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/learned.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operator/verdict/runtime_page.h"

namespace railhead::op::verdict {
namespace {

using Report = std::shared_ptr<const RuntimeReport>;

RankReport RankOf(const std::string& job, int rank, bool tells = true) {
  RankReport report;
  report.job = job;
  report.rank = rank;
  if (tells) report.start = {4, "verbs", "auto", "warn", "", "train-0"};
  return report;
}

Report ReportOf(std::vector<RankReport> ranks) {
  return std::make_shared<const RuntimeReport>(RuntimeReport{std::move(ranks)});
}

TEST(LearnTest, WhatIsThereIsWhatIsKeptAndCostsNothing) {
  const Report now = ReportOf({RankOf("a", 0), RankOf("a", 1)});
  EXPECT_EQ(Learn(nullptr, now), now);
  EXPECT_EQ(Learn(ReportOf({RankOf("a", 0)}), now), now);
}

TEST(LearnTest, WhoSaysNothingOfItsStartTakesNothingBack) {
  const Report before = ReportOf({RankOf("a", 0)});
  EXPECT_EQ(Learn(before, ReportOf({})), before);
  EXPECT_EQ(Learn(before, ReportOf({RankOf("a", 0, false)})), before);
  EXPECT_EQ(Learn(before, nullptr), before);
  EXPECT_EQ(Learn(nullptr, ReportOf({RankOf("a", 0, false)})), nullptr);
}

TEST(LearnTest, OfEachRankTheLatestIsKept) {
  RankReport later = RankOf("a", 0);
  later.start->transport = "tcp";
  const Report learned =
      Learn(ReportOf({RankOf("a", 0), RankOf("b", 7)}), ReportOf({later, RankOf("c", 2, false)}));
  EXPECT_EQ(*learned, *ReportOf({later, RankOf("b", 7)}));
}

TEST(LearnTest, NoMoreRanksAreKeptThanAPageMayHave) {
  Report learned;
  for (size_t i = 0; i < 3 * kMaxRanks; ++i) {
    learned = Learn(learned, ReportOf({RankOf(absl::StrCat("job", i), 0)}));
  }
  EXPECT_EQ(learned->ranks.size(), kMaxRanks);
}

TEST(BytesOfTest, CountsWhatNobodyElseHas) {
  RankReport rank = RankOf("a", 0);
  const size_t bare = BytesOf(*ReportOf({rank}));
  rank.degraded = std::string(1000, 'x');
  EXPECT_GT(BytesOf(*ReportOf({rank})), bare + 1000);
  rank.degraded.clear();
  rank.given = SharedList<GivenRail>({{0, std::string(5000, 'x'), "", "", 0, "", ""}});
  const Report alone = ReportOf({rank});
  rank.given = {};
  EXPECT_GT(BytesOf(*alone), bare + 5000);
  // A list that many have is nobody's own.
  const std::vector<RuntimeReport> others(4, *alone);
  EXPECT_EQ(BytesOf(*alone), bare);
}

}  // namespace
}  // namespace railhead::op::verdict
