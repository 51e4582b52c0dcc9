// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster/namespace_pool.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace railhead::op {
namespace {

using PooledText = SharedValue<std::string>;
constexpr size_t kFreeBytes = NamespacePool<std::string>::kFree;
constexpr FairShare kPoolShare = {
    .most = 40'000, .most_of_one = 20'000, .reserve = 10'000, .small = 5'000};

std::string DistinctText(int number, size_t bytes) {
  std::string text(bytes, 'x');
  return text.replace(0, 8, std::to_string(10'000'000 + number));
}

TEST(NamespacePoolTest, ANamespaceHasItsShareAndOthersTheirs) {
  NamespacePool<std::string> pool(kPoolShare);
  std::vector<PooledText> kept;
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    const std::optional<PooledText> text =
        pool.Share(DistinctText(i, kFreeBytes + 1000), "evil", kFreeBytes + 1000);
    if (text) kept.push_back(*text);
    refused += text ? 0 : 1;
  }
  EXPECT_EQ(kept.size(), 20U);
  EXPECT_EQ(refused, 80);
  EXPECT_TRUE(pool.Share(DistinctText(0, kFreeBytes + 1000), "evil", kFreeBytes + 1000))
      << "it is there";
  EXPECT_TRUE(pool.Share(DistinctText(500, 100), "evil", 100)) << "small ones do not count";
  EXPECT_TRUE(pool.Share(DistinctText(600, kFreeBytes + 1000), "good", kFreeBytes + 1000));
  kept.clear();
  EXPECT_TRUE(pool.Share(DistinctText(700, kFreeBytes + 9000), "evil", kFreeBytes + 9000))
      << "they are gone";
}

TEST(NamespacePoolTest, WhatIsInUseNeverExceedsTheShare) {
  std::mt19937 random(7);
  NamespacePool<std::string> pool(kPoolShare);
  struct Held {
    std::string space;
    size_t counts;
    PooledText text;
  };
  std::deque<Held> held;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (!held.empty() && random() % 3 == 0) {
      held.erase(held.begin() + static_cast<int64_t>(random() % held.size()));
      continue;
    }
    const std::string space = std::string(1, static_cast<char>('a' + random() % 5));
    const size_t bytes = random() % 6000;
    const std::optional<PooledText> text = pool.Share(DistinctText(i, bytes + 8), space, bytes);
    const size_t counts = bytes > kFreeBytes ? bytes - kFreeBytes : 0;
    std::map<std::string, size_t> used;
    size_t all = 0;
    for (const Held& one : held) {
      used[one.space] += one.counts;
      all += one.counts;
    }
    ASSERT_EQ(text.has_value(), counts == 0 || kPoolShare.Allows(all, used[space], counts)) << i;
    if (text) {
      held.push_back({space, counts, *text});
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace railhead::op
