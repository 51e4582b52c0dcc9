// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/rank_causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace railhead {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(RankCausesTest, RanksAreRanges) {
  EXPECT_EQ(RankRanges({3}), "rank 3");
  EXPECT_EQ(RankRanges({0, 1}), "ranks 0-1");
  EXPECT_EQ(RankRanges({0, 1, 2, 3, 4, 5, 9}), "ranks 0-5, 9");
  std::set<int> odd;
  for (int rank = 1; rank < 64; rank += 2) odd.insert(rank);
  EXPECT_EQ(RankRanges(odd), "ranks 1, 3, 5, 7, 9, 11, 13, 15 and 24 more");
}

TEST(RankCausesTest, ACauseIsSaidOnce) {
  RankCauses causes;
  EXPECT_TRUE(causes.empty());
  causes.Add(4, "rank 4 (pod e)", "rank 4 (pod e) has no secret");
  EXPECT_EQ(causes.Text(), "rank 4 (pod e) has no secret");
  causes.Add(1, "rank 1 (pod b)", "no memory");
  causes.Add(5, "rank 5", "rank 5 has no secret");
  causes.Add(3, "rank 3 (pod d)", "rank 3 (pod d): no memory");
  EXPECT_EQ(causes.Text(),
            "each of rank 1 (pod b) and rank 3 (pod d): no memory; "
            "each of rank 4 (pod e) and rank 5 has no secret");
  causes.Add(2, "rank 2 (pod c)", "no memory");
  causes.Add(9, "rank 9", "rank 9 has no secret");
  EXPECT_EQ(causes.Text(), "each of ranks 1-3: no memory; each of ranks 4-5, 9 has no secret");
}

TEST(RankCausesTest, OfManyTheFirstAreNamed) {
  RankCauses causes;
  for (int rank = 0; rank < 64; ++rank) {
    causes.Add(rank, absl::StrCat("rank ", rank),
               absl::StrCat("cause ", rank, std::string(512, 'x')));
  }
  EXPECT_THAT(causes.Text(), AllOf(StartsWith("rank 0: cause 0x"), HasSubstr("rank 7: cause 7x"),
                                   EndsWith("; and 56 more causes (ranks 8-63)")));
  EXPECT_LE(causes.Text().size(), RankCauses::kMostBytes);
}

TEST(RankCausesTest, AnyWorldHasEachCauseInBoundedLength) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const unsigned distinct = 1 + random() % 8;
    std::vector<std::string> texts;
    for (unsigned i = 0; i < distinct; ++i) {
      texts.push_back(absl::StrCat("cause ", i, ";", std::string(random() % 600, 'x')));
    }
    const std::string pod(random() % 300, 'p');
    RankCauses causes;
    std::set<std::string> expected;
    for (int rank = 0; rank < 64; ++rank) {
      if (random() % 3 == 0) continue;
      const std::string& cause = texts[random() % texts.size()];
      const std::string name = absl::StrCat("rank ", rank, " (", pod, ")");
      causes.Add(rank, name, random() % 2 == 0 ? cause : absl::StrCat(name, ": ", cause));
      expected.insert(cause.substr(0, 8));
    }
    const std::string text = causes.Text();
    EXPECT_LE(text.size(), RankCauses::kMostBytes) << "seed " << seed;
    for (const std::string& cause : expected) {
      const size_t first = text.find(cause);
      EXPECT_NE(first, std::string::npos) << "seed " << seed << ": " << cause;
      EXPECT_EQ(text.find(cause, first + 1), std::string::npos) << "seed " << seed << ": " << cause;
    }
  }
}

}  // namespace
}  // namespace railhead
