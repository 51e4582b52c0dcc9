// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/reservation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace railhead::op::gangs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Reservation, TakesTheNodesThatAreFreeFirst) {
  const std::vector<NodeOutlook> nodes = {{0, 1}, {1, 1}, {0, 1}, {1, 1}};
  EXPECT_THAT(NodesToKeepFree(nodes, {0, 0, 0, 0}, 2), ElementsAre(1, 3));
  EXPECT_THAT(NodesToKeepFree(nodes, {0, 0, 0, 0}, 3), ElementsAre(0, 1, 3));
}

TEST(Reservation, IsInOneDomainThatCouldHoldAll) {
  const std::vector<NodeOutlook> nodes = {{1, 1}, {1, 1}, {0, 1}, {0, 1}, {1, 1}};
  EXPECT_THAT(NodesToKeepFree(nodes, {0, 0, 1, 1, 1}, 3), ElementsAre(2, 3, 4));
  EXPECT_THAT(NodesToKeepFree(nodes, {0, 0, 1, 1, 1}, 4), IsEmpty());
}

TEST(Reservation, WhatNeverHasRoomIsNotKept) {
  EXPECT_THAT(NodesToKeepFree({{0, 0}, {0, 2}}, {0, 0}, 2), ElementsAre(1));
  EXPECT_THAT(NodesToKeepFree({}, {}, 1), IsEmpty());
}

// Others take what is not kept, and what runs anywhere ends at random: the gang comes to its room,
// and the room of what is kept never becomes less.
TEST(Reservation, ComesEverCloserToWhatTheGangNeeds) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    std::vector<NodeOutlook> nodes(20);
    std::vector<int> domains;
    for (size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].at_best = draw(0, 3);
      domains.push_back(static_cast<int>(i) / 7);
    }
    const int pods = draw(1, 12);
    if (NodesToKeepFree(nodes, domains, pods).empty()) continue;
    int before = 0;
    int rounds = 0;
    for (;; ++rounds) {
      ASSERT_LT(rounds, 1000) << "seed " << seed;
      const std::vector<size_t> kept = NodesToKeepFree(nodes, domains, pods);
      int now = 0;
      for (const size_t i : kept) now += nodes[i].now;
      ASSERT_GE(now, std::min(before, pods)) << "seed " << seed;
      before = now;
      if (now >= pods) break;
      const std::set<size_t> is_kept(kept.begin(), kept.end());
      for (size_t i = 0; i < nodes.size(); ++i) {
        if (draw(0, 3) == 0) nodes[i].now = std::min(nodes[i].now + 1, nodes[i].at_best);
        if (!is_kept.contains(i) && draw(0, 2) == 0) nodes[i].now = 0;
      }
    }
  }
}

}  // namespace
}  // namespace railhead::op::gangs
