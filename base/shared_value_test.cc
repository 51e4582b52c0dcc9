// SPDX-License-Identifier: Apache-2.0
#include "base/shared_value.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace railhead {
namespace {

TEST(SharedValueTest, IsComparedByValueAndKeptOnce) {
  ValuePool<std::string> pool;
  const SharedValue<std::string> a = pool.Share(std::string("same"));
  const SharedValue<std::string> b = pool.Share(std::string("same"));
  EXPECT_EQ(&*a, &*b);
  EXPECT_EQ(a, SharedValue<std::string>(std::string("same")));
  EXPECT_NE(a, SharedValue<std::string>());
  EXPECT_EQ(SharedValue<std::string>()->size(), 0);
  EXPECT_EQ(SharedValue<std::string>(), SharedValue<std::string>(std::string()));
}

TEST(SharedValueTest, WhatNobodyHasAnyMoreIsLetGo) {
  ValuePool<int> pool;
  const SharedValue<int> kept = pool.Share(-1);
  for (int i = 0; i < 10'000; ++i) pool.Share(i);
  EXPECT_LT(pool.size(), 200);
  EXPECT_EQ(&*pool.Share(-1), &*kept);
}

}  // namespace
}  // namespace railhead
