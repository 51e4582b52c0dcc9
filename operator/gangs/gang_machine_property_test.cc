// SPDX-License-Identifier: Apache-2.0
//
// Histories drawn at random: whatever happens, no node's room is given twice, no pod goes to a node
// that takes none, no gang begins before it is whole, no Job fails by us; and when it is over every
// gang runs, so none is half released for ever, and no two hold each other.
#include <gtest/gtest.h>

#include <cstdint>

#include "operator/gangs/gang_machine.h"
#include "operator/gangs/testing/gang_world.h"

namespace railhead::op::gangs {
namespace {

TEST(GangMachineProperty, NothingIsGivenTwiceOrDestroyedAndInTheEndAllRun) {
  testing::GangWorld::Tally all;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    testing::GangWorld world(seed);
    for (int step = 0; step < 80; ++step) {
      world.Step();
      ASSERT_EQ(world.wrong(), "") << world.Describe();
    }
    world.CalmDown();
    for (int step = 0; step < 400 && !world.AllDone(); ++step) {
      world.Step();
      ASSERT_EQ(world.wrong(), "") << world.Describe();
    }
    ASSERT_TRUE(world.AllDone()) << world.Describe();
    all.released += world.tally().released;
    all.whole += world.tally().whole;
    all.evicted += world.tally().evicted;
    all.refused += world.tally().refused;
    all.lost_answers += world.tally().lost_answers;
    all.restarts += world.tally().restarts;
  }
  // All of it has happened.
  for (const int times :
       {all.released, all.whole, all.evicted, all.refused, all.lost_answers, all.restarts}) {
    EXPECT_GT(times, 100);
  }
}

}  // namespace
}  // namespace railhead::op::gangs
