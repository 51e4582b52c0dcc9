// SPDX-License-Identifier: Apache-2.0
#include "placement/leaf_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace railhead::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

// One level of `leaves`.
Tree Flat(size_t leaves) { return {std::vector<fabric::FabricDomain>(leaves)}; }

TEST(LeafChoice, CostsComeAfterTheNumberOfLeaves) {
  const std::vector<LeafOffer> offers = {{4, 1}, {2, -5}, {2, -5}, {5, 0}};
  EXPECT_THAT(*ChooseLeaves(Flat(4), offers, 4, 0), Optional(ElementsAre(3)));
  EXPECT_THAT(*ChooseLeaves(Flat(4), offers, 2, 0), Optional(ElementsAre(1)));
  EXPECT_THAT(*ChooseLeaves(Flat(4), offers, 7, 0), Optional(ElementsAre(1, 3)));
}

TEST(LeafChoice, ALeafWithoutRoomIsNeverUsed) {
  EXPECT_THAT(*ChooseLeaves(Flat(3), {{0, -9}, {-1, -9}, {1, 0}}, 1, 0), Optional(ElementsAre(2)));
  EXPECT_EQ(*ChooseLeaves(Flat(2), {{0, 0}, {1, 0}}, 2, 0), std::nullopt);
}

// All sets of leaves, with costs of both signs.
TEST(LeafChoice, IsFirstAmongAllSets) {
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    const size_t leaves = 1 + random() % 9;
    std::vector<LeafOffer> offers(leaves);
    for (LeafOffer& offer : offers) {
      offer = {static_cast<int>(random() % 7), static_cast<int64_t>(random() % 9) - 4};
    }
    const int pods = 1 + static_cast<int>(random() % 20);
    using Key = std::tuple<size_t, int64_t, int, std::vector<int>>;
    std::optional<Key> best;
    for (unsigned set = 1; set < (1U << leaves); ++set) {
      Key key;
      auto& [count, cost, room, chosen] = key;
      bool useless = false;
      for (size_t i = 0; i < leaves; ++i) {
        if ((set >> i & 1U) == 0) continue;
        useless = useless || offers[i].room == 0;
        ++count;
        cost += offers[i].cost;
        room += offers[i].room;
        chosen.push_back(static_cast<int>(i));
      }
      if (!useless && room >= pods && (!best || key < *best)) best = key;
    }
    const absl::StatusOr<std::optional<std::vector<int>>> found =
        ChooseLeaves(Flat(leaves), offers, pods, 0);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->has_value(), best.has_value()) << round;
    if (best) {
      ASSERT_EQ(**found, std::get<3>(*best)) << round;
    }
  }
}

TEST(LeafChoice, RefusesWhatWouldTakeTooLong) {
  const std::vector<LeafOffer> offers(4000, LeafOffer{1000, 0});
  EXPECT_TRUE(absl::IsResourceExhausted(ChooseLeaves(Flat(4000), offers, 1'000'000, 0).status()));
}

TEST(LeafChoice, RefusesMoreLevelsThanItCanWeigh) {
  // Eight levels of 4096 domains, each with one inside.
  Tree tree(8, std::vector<fabric::FabricDomain>(4096));
  for (size_t level = 0; level < tree.size(); ++level) {
    for (int i = 0; i < 4096; ++i) {
      tree[level][static_cast<size_t>(i)] = {"", level == 0 ? -1 : i, i, 1};
    }
  }
  const std::vector<LeafOffer> offers(4096, LeafOffer{1, 0});
  EXPECT_TRUE(absl::IsResourceExhausted(ChooseLeaves(tree, offers, 4096, 0).status()));
  EXPECT_THAT(*ChooseLeaves(tree, offers, 2, 0), Optional(ElementsAre(0, 1)));
}

}  // namespace
}  // namespace railhead::placement
