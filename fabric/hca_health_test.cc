// SPDX-License-Identifier: Apache-2.0
#include "fabric/hca_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace railhead::fabric {
namespace {

constexpr int kStages = static_cast<int>(Stage::kAssignment) + 1;

TEST(HealthTest, UsableMeansEmpty) {
  Health health;
  EXPECT_TRUE(health.usable());
  EXPECT_EQ(health.reason(), "");
  EXPECT_EQ(health.Text(), "");
  health.Set(Stage::kRules, "port 1 is DOWN");
  EXPECT_FALSE(health.usable());
  health.Set(Stage::kRules, "");
  EXPECT_EQ(health, Health());
}

TEST(HealthTest, EachStageHasItsName) {
  std::set<std::string> names;
  for (int i = 0; i < kStages; ++i) names.emplace(ToString(static_cast<Stage>(i)));
  EXPECT_EQ(names.size(), kStages);
  EXPECT_FALSE(names.contains(""));
}

// All pairs of troubles, in either order of their starts and ends.
TEST(HealthTest, TheEndOfOneTroubleLeavesTheOther) {
  for (int a = 0; a < kStages; ++a) {
    for (int b = 0; b < kStages; ++b) {
      if (a == b) continue;
      for (const int ends : {a, b}) {
        Health health;
        health.Set(static_cast<Stage>(a), absl::StrCat("trouble ", a));
        health.Set(static_cast<Stage>(b), absl::StrCat("trouble ", b));
        ASSERT_EQ(health.reason(), absl::StrCat("trouble ", std::min(a, b)));
        ASSERT_EQ(health.Text(),
                  absl::StrCat("trouble ", std::min(a, b), "; trouble ", std::max(a, b)));
        health.Set(static_cast<Stage>(ends), "");
        ASSERT_EQ(health.Text(), absl::StrCat("trouble ", a + b - ends));
      }
    }
  }
}

// The model: an unordered list of (stage, text), searched from the beginning.
TEST(HealthTest, AgreesWithAListInAnyHistory) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Health health;
    std::vector<std::pair<int, std::string>> list;
    for (int step = 0; step < 50; ++step) {
      const int stage = static_cast<int>(random() % kStages);
      const std::string text = random() % 2 == 0 ? "" : absl::StrCat("trouble ", random() % 4);
      health.Set(static_cast<Stage>(stage), text);
      std::erase_if(list, [stage](const auto& one) { return one.first == stage; });
      if (!text.empty()) list.emplace_back(stage, text);
      std::vector<std::pair<int, std::string>> sorted = list;
      std::sort(sorted.begin(), sorted.end());
      ASSERT_EQ(health.usable(), list.empty());
      ASSERT_EQ(health.reason(), list.empty() ? "" : sorted.front().second);
      ASSERT_EQ(health.Text(), absl::StrJoin(sorted, "; ", [](std::string* out, const auto& one) {
                  absl::StrAppend(out, one.second);
                }));
      for (int other = 0; other < kStages; ++other) {
        ASSERT_EQ(health.Has(static_cast<Stage>(other)),
                  std::any_of(list.begin(), list.end(),
                              [other](const auto& one) { return one.first == other; }));
      }
    }
  }
}

}  // namespace
}  // namespace railhead::fabric
