// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/partners.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <set>
#include <vector>

namespace railhead::comm {
namespace {

TEST(PartnersTest, UnevenPodsMeasureTheWire) {
  // Ranks 0 and 1 share a pod, and rank 2 has one of its own.
  const std::vector<int> places = {0, 0, 1};
  EXPECT_EQ(Partners(places), (std::vector<int>{2, 1, 0}));
}

TEST(PartnersTest, InOnePlaceNeighboursMeasure) {
  const std::vector<int> places(5, 3);
  EXPECT_EQ(Partners(places), (std::vector<int>{1, 0, 3, 2, 4}));
}

TEST(PartnersTest, PairsAreMutualAndSomeCrossWhereverThereAreTwoPlaces) {
  std::mt19937 random(1);
  for (int world = 2; world < 40; ++world) {
    for (int pods = 1; pods <= world; ++pods) {
      std::vector<int> places;
      for (int rank = 0; rank < world; ++rank) places.push_back(static_cast<int>(random() % pods));
      const std::vector<int> partners = Partners(places);
      int crossing = 0;
      int alone = 0;
      for (int rank = 0; rank < world; ++rank) {
        const int partner = partners[static_cast<size_t>(rank)];
        EXPECT_EQ(partners[static_cast<size_t>(partner)], rank);
        alone += partner == rank ? 1 : 0;
        crossing +=
            places[static_cast<size_t>(partner)] != places[static_cast<size_t>(rank)] ? 1 : 0;
      }
      EXPECT_EQ(alone, world % 2);
      const std::set<int> different(places.begin(), places.end());
      EXPECT_EQ(crossing > 0, different.size() > 1);
    }
  }
}

}  // namespace
}  // namespace railhead::comm
