// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/spread.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <thread>
#include <vector>

namespace railhead::shm {
namespace {

cpu_set_t Of(std::initializer_list<size_t> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const size_t core : cores) CPU_SET(core, &set);
  return set;
}

bool Same(const std::optional<cpu_set_t>& one, const cpu_set_t& other) {
  return one.has_value() && CPU_EQUAL(&*one, &other) != 0;
}

TEST(WhereToTest, WhoIsAloneStays) {
  EXPECT_FALSE(WhereTo(Of({0, 1}), 0, {}).has_value());
  EXPECT_FALSE(WhereTo(Of({0, 1}), 0, {1}).has_value());
}

TEST(WhereToTest, WhoIsNotGoesWhereNobodyIs) {
  EXPECT_TRUE(Same(WhereTo(Of({0, 1}), 0, {0}), Of({1})));
  EXPECT_TRUE(Same(WhereTo(Of({0, 1, 5, 900}), 5, {5, 1}), Of({0, 900})));
}

TEST(WhereToTest, WithoutACoreToGoToItStays) {
  EXPECT_FALSE(WhereTo(Of({3}), 3, {3}).has_value());
  EXPECT_FALSE(WhereTo(Of({0, 1, 2}), 1, {0, 1, 2}).has_value());
}

TEST(CountCoresTest, ReadsTheKernelsLists) {
  EXPECT_EQ(CountCores("0-3,8\n"), 5U);
  EXPECT_EQ(CountCores("7"), 1U);
  for (const char* wrong : {"", "a", "3-1", "1,", "1-", "-1", "0-99999999999"}) {
    EXPECT_EQ(CountCores(wrong), 0U) << wrong;
  }
}

// The other rank is said to be wherever this one is.
TEST(SpreadTest, ARankLeavesTheCoreOfAnotherAndMayReturn) {
  std::thread([] {
    cpu_set_t before;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "there is one core";
    Spread::Core own{0};
    Spread::Core other{0};
    Spread spread({&other, &own}, 1);
    EXPECT_FALSE(spread.Part()) << "nobody knows where the other one is";
    EXPECT_NE(own, 0U) << "it has not said where it is";
    other = CPU_SETSIZE;
    EXPECT_TRUE(spread.Part()) << "it is elsewhere";
    // The kernel may move this thread between the two: then there is nothing to do.
    for (int i = 0; i < 20; ++i) {
      const uint32_t was = static_cast<uint32_t>(sched_getcpu()) + 1;
      other = was;
      Spread fresh({&other, &own}, 1);
      EXPECT_FALSE(fresh.Part());
      EXPECT_NE(own, was);
    }
    cpu_set_t after;
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  }).join();
}

TEST(SpreadTest, WhoIsBoundStays) {
  std::thread([] {
    const auto core = static_cast<size_t>(sched_getcpu());
    const cpu_set_t bound = Of({core});
    ASSERT_EQ(sched_setaffinity(0, sizeof bound, &bound), 0);
    Spread::Core own{0};
    Spread::Core other{static_cast<uint32_t>(core) + 1};
    Spread spread({&own, &other}, 0);
    EXPECT_FALSE(spread.Part());
    EXPECT_FALSE(spread.Part())
        << "it does not try again so soon, and is as little alone as before";
    EXPECT_EQ(own, core + 1);
    cpu_set_t after;
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&bound, &after));
  }).join();
}

}  // namespace
}  // namespace railhead::shm
