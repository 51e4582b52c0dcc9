// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster/fair_share.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "operator/collector/verdict_counts.h"

namespace railhead::op {
namespace {

TEST(FairShareTest, WhoHasLittleGetsSomeWhateverOthersHave) {
  constexpr FairShare kShare = {.most = 100, .most_of_one = 40, .reserve = 20, .small = 5};
  EXPECT_TRUE(kShare.Allows(39, 39, 1));
  EXPECT_FALSE(kShare.Allows(40, 40, 1)) << "all that one may have";
  EXPECT_TRUE(kShare.Allows(79, 20, 1));
  EXPECT_FALSE(kShare.Allows(80, 20, 1)) << "the rest is for others";
  EXPECT_TRUE(kShare.Allows(80, 4, 1));
  EXPECT_FALSE(kShare.Allows(80, 5, 1));
  EXPECT_TRUE(kShare.Allows(99, 0, 1));
  EXPECT_FALSE(kShare.Allows(100, 0, 1));
}

TEST(FairShareTest, NoNamespaceHidesTheSeriesOfAnother) {
  VerdictCounts counts;
  for (int i = 0; i < 2000; ++i) {
    counts[{.warning = true, .space = "aaa", .job = absl::StrCat(i), .reason = "RailUnusable"}] = 1;
  }
  const VerdictSeries quiet = {
      .warning = true, .space = "zzz", .job = "train", .reason = "RailDown"};
  counts[quiet] = 4;
  const VerdictCounts chosen = FairlyChosen(counts, 1000);
  EXPECT_EQ(chosen.size(), 1000U);
  EXPECT_TRUE(chosen.contains(quiet));
  EXPECT_EQ(FairlyChosen(counts, 3000).size(), counts.size());
}

}  // namespace
}  // namespace railhead::op
