// SPDX-License-Identifier: Apache-2.0
#include "runtime/preflight/cause.h"

#include <gtest/gtest.h>

namespace railhead::preflight {
namespace {

TEST(CauseTest, IsTheFirstCheckThatFails) {
  RankFacts rank;
  RailFacts rail;
  rail.state = "DOWN";
  EXPECT_EQ(CauseOf(rail, rank), "") << "it works, whatever it looks like";
  rail.trouble = "no";
  EXPECT_EQ(CauseOf(rail, rank), "port");
  rail.device_node_trouble = "/dev/infiniband/uverbs0: Permission denied";
  EXPECT_EQ(CauseOf(rail, rank), "device_node");
  rail.device_node_trouble.clear();
  rail.state = "ACTIVE";
  EXPECT_EQ(CauseOf(rail, rank), "other");
  rank.memlock = 100;
  rank.least_bytes = 100;
  EXPECT_EQ(CauseOf(rail, rank), "other") << "as much as it needs";
  rank.memlock = 99;
  EXPECT_EQ(CauseOf(rail, rank), "memlock");
  rail.state.clear();
  EXPECT_EQ(CauseOf(rail, rank), "memlock") << "an unknown state is no reason";
}

}  // namespace
}  // namespace railhead::preflight
