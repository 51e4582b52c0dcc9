// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace railhead::bootstrap {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TreeTest, TheFirstRanks) {
  EXPECT_FALSE(Parent(0).has_value());
  EXPECT_FALSE(Guardian(0).has_value());
  EXPECT_EQ(Parent(4), 0);
  EXPECT_FALSE(Guardian(4).has_value());
  EXPECT_EQ(Parent(5), 1);
  EXPECT_EQ(Guardian(5), 0);
  EXPECT_THAT(Children(0, 1), IsEmpty());
  EXPECT_THAT(Children(0, 4), ElementsAre(1, 2, 3));
  EXPECT_THAT(Children(1, 8), ElementsAre(5, 6, 7));
  EXPECT_THAT(Grandchildren(0, 10), ElementsAre(5, 6, 7, 8, 9));
  EXPECT_THAT(Subtree(0, 8), ElementsAre(0, 1, 5, 6, 7, 2, 3, 4));
}

TEST(TreeTest, ParentsAndChildrenAgreeInEveryWorld) {
  for (const int world : {1, 2, 3, 4, 5, 6, 21, 22, 85, 86, 256, 1000, 4096}) {
    for (int rank = 0; rank < world; ++rank) {
      for (const int child : Children(rank, world)) {
        ASSERT_LT(child, world);
        ASSERT_EQ(Parent(child), rank);
      }
      for (const int grandchild : Grandchildren(rank, world)) {
        ASSERT_EQ(Guardian(grandchild), rank);
      }
    }
    std::vector<int> all = Subtree(0, world);
    std::sort(all.begin(), all.end());
    std::vector<int> expected(static_cast<size_t>(world));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
  }
}

TEST(TreeTest, WhoIsAboveWhomAndHowFar) {
  for (const int world : {1, 2, 5, 6, 21, 22, 100}) {
    int deepest = 0;
    for (int rank = 0; rank < world; ++rank) {
      deepest = std::max(deepest, Depth(rank));
      const std::vector<int> below = Subtree(rank, world);
      for (int other = 0; other < world; ++other) {
        const bool contained = std::find(below.begin(), below.end(), other) != below.end();
        ASSERT_EQ(IsAbove(rank, other), contained && other != rank) << rank << " " << other;
        if (contained) {
          ASSERT_LE(Depth(other), Depth(rank) + Height(rank, world));
        }
      }
    }
    EXPECT_EQ(Height(0, world), deepest);
  }
}

TEST(TreeTest, LargeNumbersDoNotOverflow) {
  constexpr int kLargest = std::numeric_limits<int>::max();
  EXPECT_THAT(Children(kLargest - 1, kLargest), IsEmpty());
  EXPECT_THAT(Children(kLargest / 2, kLargest), IsEmpty());
}

}  // namespace
}  // namespace railhead::bootstrap
