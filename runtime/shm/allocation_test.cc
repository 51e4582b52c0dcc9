// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace railhead::shm {
namespace {

TEST(AllocationTest, IsZeroAlignedAndKnownByAllItsBytes) {
  constexpr size_t kBytes = 100000;
  const absl::StatusOr<std::byte*> memory = Allocate(kBytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(*memory) % 4096, 0U);
  EXPECT_TRUE(std::all_of(*memory, *memory + kBytes, [](std::byte b) { return b == std::byte{}; }));
  EXPECT_EQ(SegmentOf(*memory, kBytes)->data(), *memory);
  EXPECT_EQ(SegmentOf(*memory + kBytes - 1, 1)->data(), *memory);
  EXPECT_EQ(SegmentOf(*memory - 1, 2), nullptr);
  EXPECT_EQ(SegmentOf(*memory + kBytes - 1, 4096), nullptr);
  EXPECT_EQ(SegmentOf(*memory + 1, std::numeric_limits<size_t>::max()), nullptr);
  EXPECT_TRUE(Free(*memory).ok());
  EXPECT_EQ(SegmentOf(*memory, 1), nullptr);
}

TEST(AllocationTest, OnlyWhatWasAllocatedIsFreedAndOnce) {
  std::byte other{};
  EXPECT_EQ(SegmentOf(&other, 1), nullptr);
  EXPECT_TRUE(absl::IsInvalidArgument(Free(&other)));
  EXPECT_TRUE(absl::IsInvalidArgument(Free(nullptr)));
  const absl::StatusOr<std::byte*> memory = Allocate(1);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_TRUE(absl::IsInvalidArgument(Free(*memory + 1)));
  EXPECT_TRUE(Free(*memory).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Free(*memory)));
}

TEST(AllocationTest, WhoStillUsesASegmentKeepsIt) {
  const absl::StatusOr<std::byte*> memory = Allocate(4096);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const std::shared_ptr<const Segment> segment = SegmentOf(*memory, 4096);
  EXPECT_TRUE(Free(*memory).ok());
  **memory = std::byte{1};
  EXPECT_EQ(segment->data()[0], std::byte{1});
}

TEST(AllocationTest, MoreThanThereIsIsRefused) {
  EXPECT_TRUE(absl::IsResourceExhausted(Allocate(size_t{1} << 50U).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(Allocate(std::numeric_limits<size_t>::max()).status()));
}

}  // namespace
}  // namespace railhead::shm
