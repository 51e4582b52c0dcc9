// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/rail_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "operator/verdict/judge.h"

namespace railhead::op {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using verdict::kPortPatience;
using verdict::NodeFacts;

constexpr absl::Time kBegin = absl::UnixEpoch();

NodeFacts NodeWith(bool first, bool second) {
  NodeFacts facts;
  std::vector<fabric::SeenRail> rails(2);
  rails[0].device = "mlx5_0";
  rails[0].usable = first;
  rails[1].device = "mlx5_1";
  rails[1].usable = second;
  facts.rails = SharedList(std::move(rails));
  return facts;
}

TEST(RailWatchTest, WhatIsLostIsJustLostForAWhile) {
  const NodeFacts well = NodeWith(true, true);
  const NodeFacts lost = NodeWith(true, false);
  RailWatch watch;
  watch.Note("n1", &well, &lost, kBegin);
  EXPECT_THAT(watch.JustLost(kBegin), ElementsAre(Pair("n1", "mlx5_1")));
  EXPECT_EQ(watch.UntilLost("n1", kBegin + absl::Seconds(4)), kPortPatience - absl::Seconds(4));
  EXPECT_EQ(watch.UntilLost("n0", kBegin), absl::InfiniteDuration());
  EXPECT_EQ(watch.UntilLost("n2", kBegin), absl::InfiniteDuration());
  // That the node says it again is nothing new.
  watch.Note("n1", &lost, &lost, kBegin + absl::Seconds(5));
  EXPECT_THAT(watch.JustLost(kBegin + kPortPatience - absl::Seconds(1)),
              ElementsAre(Pair("n1", "mlx5_1")));
  EXPECT_THAT(watch.JustLost(kBegin + kPortPatience), IsEmpty());
}

TEST(RailWatchTest, WhatIsBackIsLostAnewTheNextTime) {
  const NodeFacts well = NodeWith(true, true);
  const NodeFacts lost = NodeWith(true, false);
  RailWatch watch;
  watch.Note("n1", &well, &lost, kBegin);
  watch.Note("n1", &lost, &well, kBegin + absl::Seconds(3));
  EXPECT_THAT(watch.JustLost(kBegin + absl::Seconds(3)), IsEmpty());
  watch.Note("n1", &well, &lost, kBegin + absl::Seconds(8));
  EXPECT_THAT(watch.JustLost(kBegin + absl::Seconds(12)), ElementsAre(Pair("n1", "mlx5_1")));
}

TEST(RailWatchTest, WhatWasLostBeforeItsNodeWasSeenHasBeenForLong) {
  const NodeFacts lost = NodeWith(true, false);
  RailWatch watch;
  watch.Note("n1", nullptr, &lost, kBegin);
  EXPECT_THAT(watch.JustLost(kBegin), IsEmpty());
  // Nor does anything stay of a node that is gone.
  const NodeFacts well = NodeWith(true, true);
  watch.Note("n2", &well, &lost, kBegin);
  watch.Note("n2", &lost, nullptr, kBegin);
  EXPECT_THAT(watch.JustLost(kBegin), IsEmpty());
}

}  // namespace
}  // namespace railhead::op
