// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/offer_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "device-plugin/config/config.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OfferHealthTest : public ::testing::Test {
 protected:
  OfferHealthTest() {
    for (const char* name : {"mlx5_0", "mlx5_1"}) {
      fabric::Hca hca;
      hca.name = name;
      hca.pci_address = std::string("0000:1") + name[5] + ":00.0";
      hca.netdev = std::string("ens") + name[5];
      hca.interface_here = true;
      hca.ports = {{1, "ACTIVE", "Ethernet", 400}};
      hca.address = fabric::AddressKind::kLinkLocal;
      inventory_.hcas.push_back(hca);
    }
    fabric::AssignRails(inventory_.hcas);
    config_.resources[0].selectors = {{.names = {"mlx5_0"}}};
    config_.resources.push_back({.name = "rdma/other", .selectors = {{.names = {"mlx5_1"}}}});
  }
  // '+' where it is usable.
  std::string Look(const std::set<std::string>& held = {}) {
    JudgeOffers(config_, held, inventory_);
    std::string well;
    for (const fabric::Hca& hca : inventory_.hcas) well += hca.health.usable() ? '+' : '-';
    return well;
  }

  AgentConfig config_;
  fabric::NodeInventory inventory_;
};

TEST_F(OfferHealthTest, EachResourceHasItsNetwork) {
  EXPECT_EQ(Look(), "--");
  config_.resources[1].network = fabric::PodNetwork::kAttached;
  EXPECT_EQ(Look(), "-+");
  EXPECT_THAT(inventory_.hcas[0].health.reason(), HasSubstr("link-local"));
  inventory_.hcas[1].ports[0].state = "DOWN";
  inventory_.hcas[1].set_down = true;
  EXPECT_EQ(Look(), "--");
  config_.resources[1].network = fabric::PodNetwork::kMoved;
  EXPECT_EQ(Look(), "-+");
  EXPECT_FALSE(inventory_.hcas[1].move_interface);
  config_.resources[1].move_interfaces = true;
  Look();
  EXPECT_TRUE(inventory_.hcas[1].move_interface);
  EXPECT_FALSE(inventory_.hcas[0].move_interface);
}

TEST_F(OfferHealthTest, WhatIsInAPodIsNotMissing) {
  config_.resources[1].network = fabric::PodNetwork::kMoved;
  fabric::Hca& hca = inventory_.hcas[1];
  hca.present = false;
  hca.health.Set(fabric::Stage::kMissing, "it has vanished");
  EXPECT_EQ(Look({"mlx5_1-0000_11_00_0"}), "--") << "nor is its device node there";
  inventory_.moved["mlx5_1"] = {"/dev/infiniband/uverbs1"};
  EXPECT_EQ(Look(), "--") << "no pod holds it";
  EXPECT_EQ(hca.health.reason(), "it has vanished");
  EXPECT_EQ(Look({"mlx5_1-0000_11_00_0"}), "-+");
  EXPECT_THAT(hca.char_devices, ElementsAre("/dev/infiniband/uverbs1"));
  hca.health.Set(fabric::Stage::kMissing, "it has vanished");
  EXPECT_EQ(Look({"0000:11:00.0"}), "-+") << "by its PCI address";
  hca.health.Set(fabric::Stage::kMissing, "it has vanished");
  config_.resources[1].network = fabric::PodNetwork::kAttached;
  EXPECT_EQ(Look({"0000:11:00.0"}), "--");
}

TEST_F(OfferHealthTest, ThatItIsInAPodEndsNoOtherTrouble) {
  config_.resources[1].network = fabric::PodNetwork::kMoved;
  inventory_.moved["mlx5_1"] = {"/dev/infiniband/uverbs1"};
  fabric::Hca& hca = inventory_.hcas[1];
  hca.present = false;
  hca.health.Set(fabric::Stage::kMissing, "it has vanished");
  hca.health.Set(fabric::Stage::kIdentity, "a pod may hold it as mlx5_7");
  EXPECT_EQ(Look({"mlx5_1-0000_11_00_0"}), "--");
  EXPECT_EQ(hca.health.Text(), "a pod may hold it as mlx5_7");
}

TEST_F(OfferHealthTest, TheLinkOfWhatMovesIsNotTheHosts) {
  fabric::Hca& hca = inventory_.hcas[1];
  const auto away = [this] { return JudgeOffers(config_, {}, inventory_); };
  const std::string id = DeviceId(hca);
  hca.interface_here = false;
  EXPECT_THAT(away(), IsEmpty()) << "nothing moves it";
  config_.resources[1].network = fabric::PodNetwork::kMoved;
  EXPECT_THAT(away(), ElementsAre(id));
  hca.interface_here = true;
  EXPECT_THAT(away(), IsEmpty());
  hca.set_down = true;
  EXPECT_THAT(away(), ElementsAre(id));
  hca.set_down = false;
  hca.present = false;
  EXPECT_THAT(away(), ElementsAre(id)) << "with exclusive RDMA namespaces";
}

}  // namespace
}  // namespace railhead::device_plugin
