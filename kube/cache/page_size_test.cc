// SPDX-License-Identifier: Apache-2.0
#include "kube/cache/page_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace railhead::kube {
namespace {

using ::testing::ElementsAre;

TEST(NextPageSize, ShrinksAtOnceAndGrowsBackSlowly) {
  const absl::Status large = absl::ResourceExhaustedError("the answer is too large");
  EXPECT_EQ(NextPageSize(large, 100, 100), 50);
  EXPECT_EQ(NextPageSize(absl::DeadlineExceededError("late"), 10, 100), 8);
  EXPECT_EQ(NextPageSize(absl::DeadlineExceededError("late"), 4, 100), 4);
  EXPECT_EQ(NextPageSize(large, 8, 100), 4);
  EXPECT_EQ(NextPageSize(large, 3, 100), 1);
  EXPECT_EQ(NextPageSize(large, 1, 100), 1);
  EXPECT_EQ(NextPageSize(absl::UnavailableError("away"), 50, 100), 50);
  const absl::Status expired = absl::OutOfRangeError("410");
  EXPECT_EQ(NextPageSize(expired, 8, 100), 16);
  EXPECT_EQ(NextPageSize(expired, 80, 100), 100);
  std::vector<int> sizes;
  for (int size = 50; sizes.size() < 5; sizes.push_back(size)) {
    size = NextPageSize(absl::OkStatus(), size, 100);
  }
  EXPECT_THAT(sizes, ElementsAre(62, 74, 86, 98, 100));
  EXPECT_EQ(NextPageSize(absl::OkStatus(), 100, 100), 100);
  EXPECT_EQ(NextPageSize(absl::OkStatus(), 1, 2), 2);
}

}  // namespace
}  // namespace railhead::kube
