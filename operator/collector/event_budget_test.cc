// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/event_budget.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace railhead::op {
namespace {

constexpr EventBudget::Options kOptions = {
    .all = {100, absl::Seconds(1)}, .of_one = {30, absl::Seconds(5)}, .reserve = 20};

absl::Time At(int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

// How many of `wanted` are made.
int Make(EventBudget& budget, const std::string& space, int wanted, absl::Time now) {
  int made = 0;
  for (int i = 0; i < wanted && budget.Allows(space, now); ++i) {
    budget.Spend(space, now);
    ++made;
  }
  return made;
}

TEST(EventBudgetTest, OneNamespaceDoesNotSilenceAnother) {
  EventBudget budget(kOptions);
  EXPECT_EQ(Make(budget, "loud", 2100, At(0)), 30);
  EXPECT_EQ(Make(budget, "quiet", 10, At(0)), 10);
  EXPECT_EQ(Make(budget, "loud", 2100, At(50)), 10) << "one every five seconds";
}

TEST(EventBudgetTest, TheLastAreForThoseThatWereSilent) {
  EventBudget budget(kOptions);
  int made = 0;
  for (int i = 0; i < 3; ++i) made += Make(budget, absl::StrCat("loud-", i), 2100, At(0));
  EXPECT_EQ(made, 80) << "30 of each, but not of the reserve";
  EXPECT_EQ(Make(budget, "quiet", 10, At(0)), 10);
  EXPECT_EQ(Make(budget, "loud-0", 1, At(0)), 0);
}

TEST(EventBudgetTest, ManyNamespacesAreForgottenWhenTheyAreSilent) {
  EventBudget budget(kOptions);
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(Make(budget, absl::StrCat("ns-", i), 1, At(10 * i)), 1);
  }
}

}  // namespace
}  // namespace railhead::op
