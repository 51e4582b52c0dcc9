// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/symbol_error_monitor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

class SymbolErrorMonitorTest : public ::testing::Test {
 protected:
  // What the HCA is called when `count` is read `later` seconds on; "" for usable.
  std::string After(int later, uint64_t count) {
    now_ += std::chrono::seconds(later);
    fabric::NodeInventory inventory;
    inventory.hcas.resize(2);
    inventory.hcas[0].name = "mlx5_0";
    inventory.hcas[0].ports = {{1, state_, "InfiniBand", 400}};
    inventory.hcas[0].health.Set(fabric::Stage::kSharedAddress, address_trouble_);
    inventory.hcas[1].name = "rxe0";
    rate_.Mark({{"mlx5_0", count}}, now_, inventory);
    EXPECT_TRUE(inventory.hcas[1].health.usable()) << "it has no such counter";
    return inventory.hcas[0].health.Text();
  }

  SymbolErrorMonitor rate_{{}};
  std::string state_ = "ACTIVE";
  std::string address_trouble_;
  TimePoint now_;
};

TEST_F(SymbolErrorMonitorTest, WhatWasCountedBeforeTheStartIsNoNews) {
  EXPECT_EQ(After(0, 1U << 30U), "");
}

TEST_F(SymbolErrorMonitorTest, ManyErrorsInAShortTimeAreTrouble) {
  EXPECT_EQ(After(0, 1000), "");
  EXPECT_EQ(After(30, 1099), "");
  EXPECT_EQ(After(30, 1100),
            "its link is noisy (at least 100 symbol errors within 60 s); check cable and "
            "transceiver");
  EXPECT_EQ(After(31, 1150), "") << "50 within the last minute";
}

TEST_F(SymbolErrorMonitorTest, ANoisyLinkIsToldBesideAnotherTrouble) {
  address_trouble_ = "it has the same address as mlx5_1";
  EXPECT_EQ(After(0, 0), address_trouble_);
  EXPECT_EQ(After(1, 100), address_trouble_ +
                               "; its link is noisy (at least 100 symbol errors within 60 s); "
                               "check cable and transceiver");
  address_trouble_.clear();
  EXPECT_NE(After(1, 100), "") << "the other has ended";
  EXPECT_EQ(After(61, 100), "");
}

TEST_F(SymbolErrorMonitorTest, TheSameErrorsInALongTimeAreNot) {
  EXPECT_EQ(After(0, 0), "");
  for (uint64_t minute = 1; minute < 100; ++minute) EXPECT_EQ(After(61, 99 * minute), "");
}

TEST_F(SymbolErrorMonitorTest, ItIsWellAgainWhenTheMinuteIsOver) {
  EXPECT_EQ(After(0, 0), "");
  EXPECT_NE(After(1, 5000), "");
  EXPECT_NE(After(59, 5000), "");
  EXPECT_EQ(After(1, 5000), "");
}

TEST_F(SymbolErrorMonitorTest, WhatIsCountedWhileTheLinkTrainsDoesNotCount) {
  EXPECT_EQ(After(0, 0), "");
  state_ = "DOWN";
  EXPECT_EQ(After(1, 3000), "");
  EXPECT_EQ(After(1, 9000), "");
  state_ = "ACTIVE";
  EXPECT_EQ(After(1, 9500), "");
  EXPECT_NE(After(1, 9600), "");
}

TEST_F(SymbolErrorMonitorTest, ACounterThatIsResetBeginsAnew) {
  EXPECT_EQ(After(0, 5000), "");
  EXPECT_EQ(After(1, 50), "");
  EXPECT_EQ(After(1, 149), "");
  EXPECT_NE(After(1, 150), "");
}

}  // namespace
}  // namespace railhead::device_plugin
