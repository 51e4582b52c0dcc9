// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/contradiction.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace railhead::recorder {
namespace {

using collectives::Call;
using collectives::Collective;

Call Gather(int root) {
  return Call({.collective = Collective::kGather, .root = root, .count = 20});
}
Call Barrier() { return Call({.collective = Collective::kBarrier}); }

// Of ranks that have called these, the newest first and of that number.
std::vector<Seen> Ranks(const std::vector<Recent>& recent) {
  std::vector<Seen> ranks;
  for (size_t rank = 0; rank < recent.size(); ++rank) {
    Seen& seen = ranks.emplace_back();
    seen.name = absl::StrCat("rank ", rank);
    seen.how = Seen::How::kAnswered;
    seen.position.recent = recent[rank];
  }
  return ranks;
}

TEST(ContradictionTest, RanksThatAreNotEquallyFarAgree) {
  EXPECT_TRUE(Contradiction({}).ok());
  EXPECT_TRUE(Contradiction(Ranks({{}, {7, {Gather(0)}}})).ok());
  EXPECT_TRUE(Contradiction(Ranks({{7, {Gather(0), Barrier()}}, {6, {Barrier()}}})).ok());
  EXPECT_TRUE(Contradiction(Ranks({{7, {Gather(0)}}, {3, {Barrier()}}})).ok());
}

TEST(ContradictionTest, TheEarliestIsNamedWithBothSides) {
  const std::vector<Seen> ranks = Ranks({{8, {Gather(2), Barrier(), Gather(0)}},
                                         {7, {Gather(1), Gather(0)}},
                                         {9, {Barrier(), Gather(1)}}});
  EXPECT_EQ(Contradiction(ranks).message(),
            "collective number 7: rank 0 calls barrier, and rank 1 gather of 20 bytes, root 1; all "
            "ranks must call the same, in the same order");
}

// What differs cannot always be read back from the words.
TEST(ContradictionTest, AHiddenDifferenceIsOne) {
  const Call one({.collective = Collective::kAllGather, .count = 20, .parts = 1});
  const Call other({.collective = Collective::kAllGather, .count = 20, .parts = 2});
  EXPECT_EQ(Contradiction(Ranks({{1, {one}}, {1, {other}}})).message(),
            "collective number 1: rank 0 calls all_gather of 20 bytes, and rank 1 all_gather of 20 "
            "bytes (with other counts, or one call has been made before that the other has not); "
            "all ranks must call the same, in the same order");
}

}  // namespace
}  // namespace railhead::recorder
