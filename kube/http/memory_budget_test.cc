// SPDX-License-Identifier: Apache-2.0
#include "kube/http/memory_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace railhead::kube {
namespace {

TEST(MemoryBudgetTest, GivesWhatIsFreeAndTakesItBack) {
  MemoryBudget budget(100);
  std::optional<MemoryBudget::Claim> first = budget.Take(60, absl::ZeroDuration());
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(budget.Take(41, absl::ZeroDuration()).has_value());
  EXPECT_TRUE(budget.Take(40, absl::ZeroDuration()).has_value());
  MemoryBudget::Claim moved = *std::move(first);
  first.reset();
  EXPECT_FALSE(budget.Take(41, absl::ZeroDuration()).has_value()) << "it is held once more";
}

TEST(MemoryBudgetTest, MoreThanAllIsRefusedAtOnce) {
  MemoryBudget budget(100);
  EXPECT_FALSE(budget.Take(101, absl::InfiniteDuration()).has_value());
}

TEST(MemoryBudgetTest, SmallClaimsDoNotWaitForLargeOnes) {
  MemoryBudget budget(100, 10);
  EXPECT_FALSE(budget.Take(101, absl::InfiniteDuration()).has_value());
  const std::optional<MemoryBudget::Claim> large = budget.Take(100, absl::ZeroDuration());
  ASSERT_TRUE(large.has_value());
  EXPECT_FALSE(budget.Take(11, absl::ZeroDuration()).has_value());
  const std::optional<MemoryBudget::Claim> small = budget.Take(10, absl::ZeroDuration());
  EXPECT_TRUE(small.has_value());
  EXPECT_FALSE(budget.Take(1, absl::ZeroDuration()).has_value()) << "all of the reserve is taken";
}

TEST(MemoryBudgetTest, LargeClaimsLeaveTheReserveToSmallOnes) {
  MemoryBudget budget(100, 10);
  const std::optional<MemoryBudget::Claim> first = budget.Take(60, absl::ZeroDuration());
  EXPECT_FALSE(budget.Take(41, absl::ZeroDuration()).has_value());
  EXPECT_TRUE(budget.Take(40, absl::ZeroDuration()).has_value());
}

TEST(MemoryBudgetTest, ThreadsNeverHoldMoreThanAll) {
  MemoryBudget budget(10);
  std::atomic<int> held{0};
  std::atomic<bool> exceeded{false};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, bytes = i % 4 + 3] {
      for (int round = 0; round < 200; ++round) {
        const auto claim = budget.Take(static_cast<size_t>(bytes), absl::Minutes(5));
        if ((held += bytes) > 10) exceeded = true;
        held -= bytes;
        if (!claim.has_value()) exceeded = true;
      }
    });
  }
  threads.clear();
  EXPECT_FALSE(exceeded);
}

}  // namespace
}  // namespace railhead::kube
