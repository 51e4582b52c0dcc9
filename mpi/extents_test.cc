// SPDX-License-Identifier: Apache-2.0
#include "mpi/extents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace railhead::mpi {
namespace {

// Exact for all that follows.
__extension__ typedef __int128 Exact;
constexpr Exact kMost = std::numeric_limits<ptrdiff_t>::max();

// Numbers near what overflows, and small ones.
template <typename Integer>
Integer AnyOf(std::mt19937& random, Integer least, Integer most) {
  const auto bits = std::uniform_int_distribution<int>(0, sizeof(Integer) * CHAR_BIT - 1)(random);
  const auto number = static_cast<Integer>(std::uniform_int_distribution<uint64_t>()(random) >>
                                           (sizeof(uint64_t) * CHAR_BIT - 1 - bits));
  return std::clamp(number, least, most);
}

TEST(ExtentsTest, SizesAreExactOrAnError) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same cases each time
  int fit = 0;
  constexpr int kTurns = 5000;
  for (int turn = 0; turn < kTurns; ++turn) {
    const int count = AnyOf<int>(random, 0, INT_MAX);
    const int parts = AnyOf<int>(random, 1, INT_MAX);
    const Datatype type = Plain(AnyOf<size_t>(random, 0, SIZE_MAX));
    size_t bytes = 0;
    const Outcome outcome = SizeOf(count, type, parts, &bytes);
    // A type that no memory can hold is refused when it is made; here, too.
    const bool fits = type.bytes <= static_cast<size_t>(kMost) &&
                      Exact{count} * static_cast<Exact>(type.bytes) <= kMost &&
                      Exact{count} * static_cast<Exact>(type.bytes) * parts <= kMost;
    ASSERT_EQ(outcome.error, fits ? kSuccess : kErrorCount) << outcome.text;
    if (fits) {
      ASSERT_EQ(Exact{count} * static_cast<Exact>(type.bytes), static_cast<Exact>(bytes));
    }
    fit += fits ? 1 : 0;
  }
  EXPECT_GT(fit, kTurns / 10);
  EXPECT_LT(fit, kTurns * 9 / 10);
}

TEST(ExtentsTest, PartsAreWhereTheDisplacementsSayOrAnError) {
  std::mt19937 random(2);  // NOLINT(cert-msc51-cpp)
  int fit = 0;
  constexpr int kTurns = 5000;
  for (int turn = 0; turn < kTurns; ++turn) {
    const int ranks = std::uniform_int_distribution<int>(1, 5)(random);
    const Datatype type = Plain(AnyOf<size_t>(random, 0, SIZE_MAX >> (turn % 48)));
    std::vector<int> counts;
    std::vector<int> displacements;
    bool fits = true;
    Exact total = 0;
    Exact lowest = 0;
    Exact highest = 0;
    bool found = false;
    for (int r = 0; r < ranks; ++r) {
      counts.push_back(AnyOf<int>(random, 0, INT_MAX) * (turn % 3 == r ? 0 : 1));
      displacements.push_back(AnyOf<int>(random, INT_MIN, INT_MAX));
      const auto size = static_cast<Exact>(type.bytes);
      const Exact begin = size * displacements.back();
      const Exact end = begin + size * counts.back();
      total += size * counts.back();
      fits = fits && size <= kMost && size * counts.back() <= kMost && total <= kMost;
      if (size * counts.back() == 0) continue;
      fits = fits && begin >= -kMost - 1 && begin <= kMost && end <= kMost;
      lowest = found ? std::min(lowest, begin) : begin;
      highest = found ? std::max(highest, end) : end;
      found = true;
    }
    Parts parts;
    const Outcome outcome = PartsOf(counts.data(), displacements.data(), ranks, type, &parts);
    ASSERT_EQ(outcome.ok(), fits) << "turn " << turn << ": " << outcome.text;
    if (!fits) continue;
    ++fit;
    ASSERT_EQ(Exact{parts.lowest}, lowest);
    for (int r = 0; r < ranks; ++r) {
      const auto at = static_cast<size_t>(r);
      const Exact size = static_cast<Exact>(type.bytes) * counts[at];
      ASSERT_EQ(static_cast<Exact>(parts.sizes[at]), size);
      const Exact begin = size == 0 ? lowest : static_cast<Exact>(type.bytes) * displacements[at];
      ASSERT_EQ(Exact{parts.lowest} + static_cast<Exact>(parts.offsets[at]), begin);
    }
    ASSERT_EQ(static_cast<Exact>(parts.total()), total);
  }
  EXPECT_GT(fit, kTurns / 10);
  EXPECT_LT(fit, kTurns * 9 / 10);
}

TEST(ExtentsTest, AMessageMustHaveTheSizeThatItsBufferExpects) {
  EXPECT_EQ(Agree(8, 8).error, kSuccess);
  EXPECT_EQ(Agree(0, 0).error, kSuccess);
  EXPECT_EQ(Agree(9, 8).error, kErrorTruncate);
  EXPECT_EQ(Agree(SIZE_MAX, 8).error, kErrorTruncate);
  EXPECT_EQ(Agree(7, 8).error, kErrorCount);
  EXPECT_EQ(Agree(32, 8).text,
            "a message of 32 bytes goes into a buffer of 8 bytes for it; pass counts and types of "
            "equal size on both sides");
}

}  // namespace
}  // namespace railhead::mpi
