// SPDX-License-Identifier: Apache-2.0
#include "placement/leaf_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

namespace railhead::placement {
namespace {

using ::testing::ElementsAre;

TEST(LeafShares, WithoutGroupsTheLastLeafKeepsWhatIsLeft) {
  EXPECT_THAT(ShareOut({{4, 1}, {4, 1}, {4, 1}}, 2, 10, 8, {}), ElementsAre(4, 4, 2));
}

TEST(LeafShares, GroupsAreNotCutWhereRoomIsLeft) {
  // Groups of two pods.
  EXPECT_THAT(ShareOut({{5, 1}, {4, 1}, {4, 1}}, 2, 12, 8, {16}), ElementsAre(4, 4, 4));
  // Nothing can be left: a group lies in both.
  EXPECT_THAT(ShareOut({{5, 1}, {3, 1}}, 2, 8, 8, {16}), ElementsAre(5, 3));
}

TEST(LeafShares, OutermostBordersCountFirst) {
  // To mend the first border spoils the second, which is worth it when the first is one of spines.
  EXPECT_THAT(ShareOut({{5, 0}, {5, 1}, {6, 1}}, 2, 15, 8, {16}), ElementsAre(4, 5, 6));
  EXPECT_THAT(ShareOut({{5, 1}, {5, 0}, {6, 1}}, 2, 15, 8, {16}), ElementsAre(5, 5, 5));
}

std::vector<int> Cuts(const std::vector<ChosenLeaf>& leaves, int levels, int gpus,
                      const std::vector<int64_t>& groups, const std::vector<int>& shares) {
  std::vector<int> cuts(groups.size() * static_cast<size_t>(levels));
  int64_t rank = 0;
  for (size_t i = 0; i + 1 < leaves.size(); ++i) {
    rank += shares[i];
    for (size_t group = 0; group < groups.size(); ++group) {
      if (rank * gpus % groups[group] == 0) continue;
      for (int level = leaves[i].border; level < levels; ++level) {
        ++cuts[group * static_cast<size_t>(levels) + static_cast<size_t>(level)];
      }
    }
  }
  return cuts;
}

TEST(LeafShares, IsBestAmongAllShares) {
  std::mt19937 random(6);
  int better = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<ChosenLeaf> leaves(1 + random() % 5);
    int smallest = 100;
    int room = 0;
    for (ChosenLeaf& leaf : leaves) {
      leaf = {3 + static_cast<int>(random() % 6), static_cast<int>(random() % 2)};
      smallest = std::min(smallest, leaf.room);
      room += leaf.room;
    }
    const int pods = room - static_cast<int>(random() % static_cast<unsigned>(smallest));
    const int gpus = 1 + static_cast<int>(random() % 4);
    std::vector<int64_t> groups = {1 + static_cast<int64_t>(random() % 6)};
    groups.push_back(groups[0] * (1 + static_cast<int64_t>(random() % 4)));
    std::optional<std::vector<int>> best;
    std::vector<int> shares;
    const std::function<void(int)> all = [&](int rest) {
      const size_t i = shares.size();
      if (i == leaves.size()) {
        if (rest != 0) return;
        std::vector<int> cuts = Cuts(leaves, 2, gpus, groups, shares);
        if (!best || cuts < *best) best = cuts;
        return;
      }
      for (int share = 1; share <= std::min(rest, leaves[i].room); ++share) {
        shares.push_back(share);
        all(rest - share);
        shares.pop_back();
      }
    };
    all(pods);
    const std::vector<int> found = ShareOut(leaves, 2, pods, gpus, groups);
    int total = 0;
    for (size_t i = 0; i < leaves.size(); ++i) {
      ASSERT_GE(found[i], 1);
      ASSERT_LE(found[i], leaves[i].room);
      total += found[i];
    }
    ASSERT_EQ(total, pods);
    ASSERT_EQ(Cuts(leaves, 2, gpus, groups, found), *best) << round;
    better += *best < Cuts(leaves, 2, gpus, groups, ShareOut(leaves, 2, pods, gpus, {})) ? 1 : 0;
  }
  EXPECT_GT(better, 200);
}

}  // namespace
}  // namespace railhead::placement
