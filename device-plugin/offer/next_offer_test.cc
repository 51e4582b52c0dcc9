// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/next_offer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device-plugin/config/config.h"
#include "device-plugin/offer/scan.h"
#include "fabric/hca_role.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

fabric::Hca Nic(int number, const std::string& function = "0") {
  fabric::Hca hca;
  hca.name = absl::StrCat("mlx5_", number);
  hca.pci_address = absl::StrCat("0000:0", number % 4 + 1, ":00.", function);
  hca.ports = {{1, "ACTIVE", "Ethernet", 400}};
  hca.address = fabric::AddressKind::kRoutable;
  return hca;
}

class NextOfferTest : public ::testing::Test {
 protected:
  NextOfferTest() {
    holdings_.complete = true;
    scan_.inventory.hcas = {Nic(0), Nic(1)};
  }
  // The devices of rdma/hca, "!" where one is not healthy.
  std::vector<std::string> Next() {
    state_ = NextState(std::move(state_), {config_, scan_, holdings_, grants_, now_});
    now_ += std::chrono::seconds(1);
    std::vector<std::string> devices;
    for (const Device& device : state_.devices["rdma/hca"]) {
      devices.push_back(absl::StrCat(device.id, device.hca.usable ? "" : "!"));
    }
    return devices;
  }

  AgentConfig config_;
  Scan scan_;
  Holdings holdings_;
  std::vector<Grant> grants_;
  TimePoint now_{std::chrono::hours(1)};
  OfferState state_;
};

TEST_F(NextOfferTest, FromAScanToDevices) {
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0", "mlx5_1-0000_02_00_0"));
  scan_.inventory.hcas[0].address = fabric::AddressKind::kLinkLocal;
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0!", "mlx5_1-0000_02_00_0"));
  config_.resources[0].network = fabric::PodNetwork::kAttached;
  EXPECT_THAT(state_.inventory.hcas[0].reason, HasSubstr("link-local"));
  Next();
  EXPECT_THAT(state_.inventory.hcas[0].reason, HasSubstr("recovered")) << "not at once";
}

TEST_F(NextOfferTest, CountersAreOfTheHcaWhateverItIsCalled) {
  scan_.link_downs["mlx5_0"] = 5;
  Next();
  scan_.inventory.hcas[0].name = "rocep1s0";
  scan_.link_downs = {{"rocep1s0", 5}};
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0", "mlx5_1-0000_02_00_0"));
  scan_.link_downs["rocep1s0"] = 6;
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0!", "mlx5_1-0000_02_00_0"));
}

TEST_F(NextOfferTest, TheLastScanMayBeJudgedAnew) {
  Next();
  config_.resources[0].slots = 2;
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0-s0", "mlx5_0-0000_01_00_0-s1",
                                  "mlx5_1-0000_02_00_0-s0", "mlx5_1-0000_02_00_0-s1"));
}

// At once, and without a delay after its end.
TEST_F(NextOfferTest, AnHcaThatAContainerCanOpenByAnOldDeviceNodeIsWithheld) {
  scan_.inventory.hcas[0].char_devices = {"/dev/infiniband/uverbs0"};
  scan_.inventory.hcas[1].char_devices = {"/dev/infiniband/uverbs1"};
  fabric::PodRail rail;
  rail.device = "mlx5_0";
  rail.pci_address = scan_.inventory.hcas[0].pci_address;
  rail.char_devices = {"/dev/infiniband/uverbs0"};
  grants_ = {{"uid", {"team", "a", "main", {}}, {}, {rail}}};
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0", "mlx5_1-0000_02_00_0"));
  std::swap(scan_.inventory.hcas[0].char_devices, scan_.inventory.hcas[1].char_devices);
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0!", "mlx5_1-0000_02_00_0!"));
  EXPECT_EQ(state_.renumbered.size(), 1U);
  grants_.clear();
  EXPECT_THAT(Next(), ElementsAre("mlx5_0-0000_01_00_0", "mlx5_1-0000_02_00_0"));
}

// Whatever is scanned, configured and held in any order: one state and the same inputs give one
// next state; no rail is there twice, nor beyond the last; no PF beside its chosen VF; what is
// healthy is present.
TEST_F(NextOfferTest, HoldsInAnyHistory) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    OfferState state;
    for (int step = 0; step < 15; ++step) {
      scan_.inventory.hcas.clear();
      for (int number = 0; number < 4; ++number) {
        if (random() % 4 != 0) scan_.inventory.hcas.push_back(Nic(number));
        if (random() % 3 == 0) {
          fabric::Hca vf = Nic(4 + number, "1");
          vf.role = fabric::HcaRole::kVirtualFunction;
          vf.physical_function = Nic(number).pci_address;
          if (random() % 2 == 0) vf.ports[0].state = "DOWN";
          scan_.inventory.hcas.push_back(vf);
        }
      }
      config_.resources = {{.name = "rdma/hca"}};
      if (random() % 2 == 0) config_.resources[0].per_rail = true;
      if (random() % 2 == 0) {
        config_.resources.push_back({.name = "rdma/vf", .selectors = {{.roles = {"vf"}}}});
      }
      holdings_.by_resource.clear();
      for (const auto& [resource, devices] : state.devices) {
        for (const Device& device : devices) {
          if (device.hca.usable && random() % 4 == 0) {
            holdings_.by_resource[resource].insert(device.id);
          }
        }
      }
      const OfferState before = state;
      state = NextState(std::move(state), {config_, scan_, holdings_, grants_, now_});
      const OfferState again = NextState(before, {config_, scan_, holdings_, grants_, now_});
      now_ += std::chrono::seconds(20);
      ASSERT_EQ(again.inventory, state.inventory);
      ASSERT_EQ(again.devices, state.devices);
      ASSERT_EQ(again.rail_map, state.rail_map);
      std::set<int> rails;
      for (const fabric::Hca& hca : state.inventory.hcas) {
        ASSERT_TRUE(!hca.offered || rails.insert(hca.rail).second);
        ASSERT_LE(hca.rail, fabric::kHighestRail);
        ASSERT_EQ(hca.usable, hca.reason.empty()) << hca.reason;
        ASSERT_TRUE(hca.present || !hca.usable);
        if (!hca.offered || !hca.chosen) continue;
        for (const fabric::Hca& other : state.inventory.hcas) {
          const bool held = other.pci_address == hca.physical_function && other.offered;
          ASSERT_TRUE(!held || HeldHcas(holdings_).contains(other.id) || !other.present)
              << hca.name << " is a rail beside its physical function " << other.id
              << "; held: " << absl::StrJoin(HeldHcas(holdings_), ", ");
        }
      }
    }
  }
}

}  // namespace
}  // namespace railhead::device_plugin
