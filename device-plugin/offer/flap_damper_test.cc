// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/flap_damper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class FlapDamperTest : public ::testing::Test {
 protected:
  // What is offered of an HCA that is read so, `after` the look before.
  fabric::Hca Look(seconds after, bool usable) {
    now_ += after;
    fabric::NodeInventory inventory;
    inventory.hcas.resize(1);
    inventory.hcas[0].name = "mlx5_0";
    inventory.hcas[0].health.Set(fabric::Stage::kRules, usable ? "" : "no port is ACTIVE");
    damper_.Settle(downs_, away_, now_, inventory);
    return inventory.hcas[0];
  }

  TimePoint now_ = TimePoint() + std::chrono::hours(1);
  std::map<std::string, uint64_t> downs_;
  std::set<std::string> away_;
  FlapDamper damper_{FlapDamper::Timing{}};  // 10 s; 3 troubles in 600 s: 120 s
};

TEST_F(FlapDamperTest, WhatIsSeenFirstIsTakenAsItIs) {
  EXPECT_TRUE(Look(seconds(0), true).health.usable());
  EXPECT_TRUE(Look(seconds(1), true).health.usable());
}

TEST_F(FlapDamperTest, DownAtOnceAndUpAfterTheWindow) {
  Look(seconds(0), true);
  const fabric::Hca down = Look(seconds(1), false);
  EXPECT_FALSE(down.health.usable());
  EXPECT_EQ(down.health.reason(), "no port is ACTIVE");
  const fabric::Hca up = Look(seconds(1), true);
  EXPECT_FALSE(up.health.usable());
  EXPECT_EQ(up.health.reason(), "recovered; offered again after 10 s without failure");
  EXPECT_EQ(Look(seconds(8), true), up);  // no new text, so no new message
  EXPECT_TRUE(Look(seconds(1), true).health.usable());
  EXPECT_EQ(Look(seconds(1), true).health.reason(), "");
}

TEST_F(FlapDamperTest, TheWindowBeginsAnewWithEachTrouble) {
  Look(seconds(0), true);
  Look(seconds(1), false);
  EXPECT_FALSE(Look(seconds(9), true).health.usable());
  Look(seconds(0), false);
  EXPECT_FALSE(Look(seconds(9), true).health.usable());
  EXPECT_TRUE(Look(seconds(1), true).health.usable());
}

TEST_F(FlapDamperTest, ALinkThatComesAndGoesWaitsLonger) {
  Look(seconds(0), true);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(Look(seconds(1), false).health.usable());
    EXPECT_FALSE(Look(seconds(1), true).health.usable());
  }
  EXPECT_THAT(Look(seconds(118), true).health.reason(), HasSubstr("3 failures in 600 s"));
  EXPECT_TRUE(Look(seconds(1), true).health.usable());
  // Long after, one trouble is only one.
  Look(seconds(1000), true);
  Look(seconds(1), false);
  EXPECT_TRUE(Look(seconds(10), true).health.usable());
}

TEST_F(FlapDamperTest, ThatALinkFlapsIsToldAlsoWhileItIsDown) {
  Look(seconds(0), true);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Look(seconds(1), false).health.Text(), "no port is ACTIVE");
    Look(seconds(1), true);
  }
  const fabric::Hca down = Look(seconds(1), false);
  EXPECT_EQ(down.health.reason(), "no port is ACTIVE");
  EXPECT_THAT(down.health.Text(), HasSubstr("no port is ACTIVE; its link flaps"));
  EXPECT_THAT(Look(seconds(1), true).health.reason(), HasSubstr("its link flaps"));
  EXPECT_EQ(Look(seconds(1000), false).health.Text(), "no port is ACTIVE") << "long ago";
}

TEST_F(FlapDamperTest, DownFromTheBeginningIsOfferedAfterTheWindow) {
  EXPECT_FALSE(Look(seconds(0), false).health.usable());
  EXPECT_FALSE(Look(seconds(1), true).health.usable());
  EXPECT_TRUE(Look(seconds(9), true).health.usable());
}

// Between two looks the link was lost and came back.
TEST_F(FlapDamperTest, ACounterTellsWhatNobodySaw) {
  downs_["mlx5_0"] = 7;
  EXPECT_TRUE(Look(seconds(0), true).health.usable());  // what was before we came does not count
  downs_["mlx5_0"] = 8;
  EXPECT_FALSE(Look(seconds(1), true).health.usable());
  EXPECT_TRUE(Look(seconds(10), true).health.usable());
  downs_["mlx5_0"] = 0;  // the driver was loaded anew
  EXPECT_TRUE(Look(seconds(1), true).health.usable());
  downs_["mlx5_0"] = 1;
  EXPECT_FALSE(Look(seconds(1), true).health.usable());
}

TEST_F(FlapDamperTest, ADownThatIsAlsoCountedIsOneTrouble) {
  downs_["mlx5_0"] = 0;
  Look(seconds(0), true);
  for (uint64_t i = 1; i <= 2; ++i) {
    Look(seconds(1), false);
    downs_["mlx5_0"] = i;
    Look(seconds(1), false);
    EXPECT_TRUE(Look(seconds(10), true).health.usable()) << i;
  }
}

// A CNI plugin sets the interface down, moves it into a pod, and back when the pod ends.
TEST_F(FlapDamperTest, AMoveIntoAPodIsNoFailure) {
  downs_["mlx5_0"] = 1;
  EXPECT_TRUE(Look(seconds(1), true).health.usable());
  away_ = {"mlx5_0"};
  downs_["mlx5_0"] = 2;
  EXPECT_TRUE(Look(seconds(1), true).health.usable());
  downs_["mlx5_0"] = 3;
  EXPECT_TRUE(Look(seconds(1), true).health.usable()) << "the pod's own affair";
  away_.clear();
  downs_["mlx5_0"] = 4;
  EXPECT_TRUE(Look(seconds(1), true).health.usable());
  downs_["mlx5_0"] = 5;
  EXPECT_FALSE(Look(seconds(1), true).health.usable()) << "it is back, and loses its link";
}

}  // namespace
}  // namespace railhead::device_plugin
