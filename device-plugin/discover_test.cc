// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/discover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

TEST(Discover, TableTellsDevicesAndReasons) {
  fabric::NodeInventory inventory;
  fabric::Hca good;
  good.name = "rxe0";
  good.pci_address = "0000:00:03.0";
  good.netdev = "eth1";
  good.ports = {fabric::HcaPort{1, "ACTIVE", "Ethernet", 2.5}};
  good.role = fabric::HcaRole::kSoftware;
  good.address = fabric::AddressKind::kLinkLocal;
  fabric::Hca bad;
  bad.name = "rxe1";
  bad.health.Set(fabric::Stage::kRules, "it has no port");
  inventory.hcas = {good, bad};
  fabric::AssignRails(inventory.hcas);
  EXPECT_EQ(
      ToTable(inventory),
      "RAIL  DEVICE       PCI           NUMA  NETDEV       PORT   LINK        GBIT/S   ROLE"
      "         ADDRESS   USE\n"
      "0     rxe0         0000:00:03.0  -     eth1         1      Ethernet    2.5      software"
      "     linkLocal yes\n"
      "1     rxe1         -             -     -            -      -           0        pf"
      "           -         no\n"
      "\nNot usable:\nrxe1: it has no port\n");
}

TEST(Discover, EveryReasonHasItsLine) {
  fabric::NodeInventory inventory;
  inventory.hcas.resize(1);
  inventory.hcas[0].name = "rxe0";
  inventory.hcas[0].health.Set(fabric::Stage::kSymbolErrors, "its link is noisy");
  inventory.hcas[0].health.Set(fabric::Stage::kRules, "it has no port");
  EXPECT_THAT(ToTable(inventory), ::testing::EndsWith("\nNot usable:\nrxe0: it has no port\n"
                                                      "rxe0: its link is noisy\n"));
}

TEST(Discover, TellsWhichHcasAreNearest) {
  fabric::NodeInventory inventory;
  for (const char* name : {"mlx5_0", "mlx5_1"}) {
    fabric::Hca hca;
    hca.name = name;
    hca.path = {"pci0000:00", {"0000:00:01.0", name}};
    inventory.hcas.push_back(hca);
  }
  inventory.gpus = {{"10de", "0000:01:00.0", 0, {"pci0000:00", {"0000:00:01.0", "0000:01:00.0"}}},
                    {"1002", "0000:41:00.0", -1, {}}};
  fabric::AssignRails(inventory.hcas);
  EXPECT_THAT(ToTable(inventory),
              ::testing::HasSubstr("\nGPU           VENDOR  NUMA  LEVEL  NEAREST\n"
                                   "0000:01:00.0  10de    0     PIX    mlx5_0, mlx5_1\n"
                                   "0000:41:00.0  1002    -     SYS    mlx5_0, mlx5_1\n"));
}

TEST(Discover, TellsWhatAConfigurationMakesOfIt) {
  fabric::NodeInventory inventory;
  for (const char* name : {"mlx5_0", "mlx5_1"}) {
    inventory.hcas.emplace_back().name = name;
    inventory.hcas.back().vendor = "15b3";
  }
  fabric::AssignRails(inventory.hcas);
  AgentConfig config;
  config.resources = {
      {"rdma/hca", {}, 1}, {"rdma/one", {Selector{}}, 4}, {"rdma/two", {Selector{}}, 1}};
  config.resources[1].selectors[0].names = {"mlx5_1"};
  config.resources[2].selectors[0].vendors = {"14e4"};
  EXPECT_EQ(ToTable(config, inventory),
            "RESOURCE                 SLOTS  HCAS\n"
            "rdma/hca                 1      mlx5_0\n"
            "rdma/one                 4      mlx5_1\n"
            "rdma/two                 1      none: mlx5_0 (rail 0) is the closest match, but its "
            "vendor is "
            "15b3, not 14e4\n");
}

TEST(Discover, EmptyNode) {
  EXPECT_THAT(ToTable(fabric::NodeInventory{}), ::testing::HasSubstr("No RDMA device"));
}

}  // namespace
}  // namespace railhead::device_plugin
