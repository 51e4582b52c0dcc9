// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/identity.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/testing/processes.h"

namespace railhead::metrics {
namespace {

TEST(IdentityTest, TheLaunchersRankCountsIfTheCommunicatorIsAPartOfItsWorld) {
  for (int size = 1; size <= 5; ++size) {
    for (int rank = 0; rank < size; ++rank) {
      const WorldRank communicator = {rank, size};
      EXPECT_EQ(RankOfProcess(std::nullopt, communicator), rank);
      for (int world = 1; world <= 6; ++world) {
        for (int launched = 0; launched < world; ++launched) {
          // Of one that is the world, or larger (torch's spawn: all have the variables of one).
          EXPECT_EQ(RankOfProcess(WorldRank{launched, world}, communicator),
                    size < world ? launched : rank);
        }
      }
    }
  }
}

TEST(IdentityTest, TheFirstDecidesUntilTheLastHasEnded) {
  auto first = IdentityOfProcess("a", std::nullopt, {3, 4});
  EXPECT_EQ(first->rank, 3);
  EXPECT_EQ(first->job, "a");
  auto second = IdentityOfProcess("b", WorldRank{2, 8}, {0, 2});
  EXPECT_EQ(second, first);
  first.reset();
  EXPECT_EQ(IdentityOfProcess("a", std::nullopt, {1, 2})->rank, 3);
  second.reset();
  EXPECT_EQ(IdentityOfProcess("a", WorldRank{2, 8}, {1, 2})->rank, 2);
}

TEST(IdentityTest, AForkedChildHasItsOwn) {
  const auto parent = IdentityOfProcess("a", std::nullopt, {3, 4});
  testing::Process child = testing::Process::Fork({}, [] {
    return absl::StrCat(IdentityOfProcess("b", std::nullopt, {1, 2})->rank);
  });
  EXPECT_EQ(child.Wait(MonotonicNow() + absl::Seconds(30)).output, "1");
  EXPECT_EQ(parent->rank, 3);
}

}  // namespace
}  // namespace railhead::metrics
