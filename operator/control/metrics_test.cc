// SPDX-License-Identifier: Apache-2.0
#include "operator/control/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace railhead::op {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

gangs::GangCounts Waiting(const std::string& name, absl::Duration wait) {
  gangs::GangCounts counts;
  counts.waiting = 1;
  counts.longest_wait = wait;
  counts.longest_space = "team";
  counts.longest_name = name;
  return counts;
}

TEST(MetricsTest, TheOldestWaitingGangIsOneSeriesWithItsName) {
  Metrics metrics;
  metrics.SetGangs(Waiting("train", absl::Seconds(60)));
  EXPECT_THAT(
      metrics.Text(),
      HasSubstr("railhead_gang_oldest_waiting_seconds{gang=\"train\",namespace=\"team\"} 60"));
  metrics.SetGangs(Waiting("train", absl::Seconds(75)));
  EXPECT_THAT(
      metrics.Text(),
      HasSubstr("railhead_gang_oldest_waiting_seconds{gang=\"train\",namespace=\"team\"} 75"));
  metrics.SetGangs(Waiting("next", absl::Seconds(5)));
  const std::string text = metrics.Text();
  EXPECT_THAT(text, Not(HasSubstr("gang=\"train\"")));
  EXPECT_THAT(
      text, HasSubstr("railhead_gang_oldest_waiting_seconds{gang=\"next\",namespace=\"team\"} 5"));
  metrics.SetGangs({});
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("railhead_gang_oldest_waiting_seconds{")));
}

}  // namespace
}  // namespace railhead::op
