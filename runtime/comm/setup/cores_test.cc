// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/cores.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace railhead::comm {
namespace {

Cores Of(std::initializer_list<size_t> cores) {
  Cores bits;
  for (const size_t core : cores) {
    bits.resize(std::max(bits.size(), core / 8 + 1));
    bits[core / 8] = static_cast<char>(static_cast<unsigned char>(bits[core / 8]) | 1U << core % 8);
  }
  return bits;
}

TEST(CoresTest, RanksThatMayRunOnAllNeedAsManyAsTheyAre) {
  EXPECT_TRUE(OneForEach({}));
  EXPECT_TRUE(OneForEach({Of({0, 1}), Of({0, 1})}));
  EXPECT_FALSE(OneForEach({Of({0, 1}), Of({0, 1}), Of({0, 1})}));
  EXPECT_FALSE(OneForEach({Of({})}));
}

TEST(CoresTest, RanksThatAreBoundHaveTheirOwn) {
  EXPECT_TRUE(OneForEach({Of({0}), Of({1})}));
  EXPECT_TRUE(OneForEach({Of({1000}), Of({3})}));
  EXPECT_FALSE(OneForEach({Of({1}), Of({1}), Of({0, 2, 3})}));
}

TEST(CoresTest, WhoMayChooseGivesWay) {
  EXPECT_TRUE(OneForEach({Of({0, 1}), Of({0, 2}), Of({0})}));
  EXPECT_TRUE(OneForEach({Of({0, 9}), Of({0, 1}), Of({1, 2}), Of({0})}));
  EXPECT_FALSE(OneForEach({Of({0, 1}), Of({0, 2}), Of({1, 2}), Of({0, 1, 2})}));
}

// Beside every way of giving the cores out.
TEST(CoresTest, AsBruteForceHasIt) {
  std::mt19937 random(7);
  int yes = 0;
  for (int round = 0; round < 2000; ++round) {
    constexpr size_t kCores = 5;
    std::vector<Cores> ranks(1 + random() % kCores);
    for (Cores& cores : ranks) cores = Cores(1, static_cast<char>(random() % (1U << kCores)));
    std::vector<size_t> order(kCores);
    std::iota(order.begin(), order.end(), 0);
    bool expected = false;
    do {
      bool fits = true;
      for (size_t rank = 0; rank < ranks.size(); ++rank) {
        fits = fits && Has(ranks[rank], order[rank]);
      }
      expected = expected || fits;
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_EQ(OneForEach(ranks), expected) << round;
    yes += expected ? 1 : 0;
  }
  EXPECT_GT(yes, 200);
  EXPECT_LT(yes, 1800);
}

}  // namespace
}  // namespace railhead::comm
