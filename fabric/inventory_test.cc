// SPDX-License-Identifier: Apache-2.0
#include "fabric/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "fabric/inventory_json.h"

namespace railhead::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Hca MakeHca(const std::string& name, const std::string& pci, bool usable = true) {
  Hca hca;
  hca.name = name;
  hca.pci_address = pci;
  hca.health.Set(Stage::kRules, usable ? "" : "port 1 is DOWN");
  hca.ports = {HcaPort{1, usable ? "ACTIVE" : "DOWN", "InfiniBand", 400}};
  if (usable) hca.char_devices = {"/dev/infiniband/uverbs0"};
  return hca;
}

std::vector<std::string> Names(const std::vector<Hca>& hcas) {
  std::vector<std::string> names;
  for (const Hca& hca : hcas) names.push_back(hca.name);
  return names;
}

NodeInventory Inventory(std::vector<Hca> hcas) {
  NodeInventory inventory;
  inventory.hcas = std::move(hcas);
  AssignRails(inventory.hcas);
  return inventory;
}

TEST(AssignRails, FollowsPciThenNameWhateverTheOrderBefore) {
  std::vector<Hca> hcas = {
      MakeHca("rxe0", ""),
      MakeHca("a", "10000:01:00.0"),
      MakeHca("mlx5_10", "0000:18:00.0"),
      MakeHca("mlx5_9", "0000:18:00.0"),
      MakeHca("z", "0000:02:00.0"),
      MakeHca("rxe00", ""),
  };
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    std::shuffle(hcas.begin(), hcas.end(), random);
    AssignRails(hcas);
    ASSERT_THAT(Names(hcas), ElementsAre("z", "mlx5_9", "mlx5_10", "a", "rxe0", "rxe00"));
    for (size_t rail = 0; rail < hcas.size(); ++rail) {
      ASSERT_EQ(hcas[rail].rail, static_cast<int>(rail));
    }
  }
}

TEST(AssignRails, NamesOrderedByNumberForm) {
  // Every name with digits must sort totally: shuffle and compare with one fixed order.
  std::vector<Hca> hcas;
  for (const std::string name : {"b", "a1", "a01", "a2", "a10", "a", "a1b", "7", "10"}) {
    hcas.push_back(MakeHca(name, ""));
  }
  AssignRails(hcas);
  const std::vector<std::string> expected = Names(hcas);
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    std::shuffle(hcas.begin(), hcas.end(), random);
    AssignRails(hcas);
    ASSERT_EQ(Names(hcas), expected);
  }
  EXPECT_THAT(expected, ElementsAre("7", "10", "a", "a01", "a1", "a1b", "a2", "a10", "b"));
}

TEST(AssignRails, UnusableDeviceKeepsItsNumber) {
  const NodeInventory inventory =
      Inventory({MakeHca("a", "0000:01:00.0"), MakeHca("b", "0000:02:00.0", false),
                 MakeHca("c", "0000:03:00.0")});
  EXPECT_EQ(inventory.hcas[1].rail, 1);
  EXPECT_EQ(inventory.hcas[2].rail, 2);
}

TEST(DataPort, IsTheFirstActiveElseTheFirst) {
  Hca hca;
  EXPECT_EQ(DataPort(hca), nullptr);
  hca.ports = {HcaPort{1, "DOWN", "", 0}, HcaPort{2, "INIT", "", 0}};
  EXPECT_EQ(DataPort(hca)->port, 1);
  hca.ports[1].state = "ACTIVE";
  EXPECT_EQ(DataPort(hca)->port, 2);
}

TEST(InventoryJson, HasTheAgreedForm) {
  Hca hca = MakeHca("mlx5_0", "0000:18:00.0");
  hca.numa_node = 0;
  hca.netdev = "ibp24s0";
  EXPECT_EQ(ToJson(Inventory({hca})), R"({
  "hcas": [
    {
      "name": "mlx5_0",
      "pciAddress": "0000:18:00.0",
      "numaNode": 0,
      "linkLayer": "InfiniBand",
      "netdev": "ibp24s0",
      "ports": [
        {
          "port": 1,
          "state": "ACTIVE",
          "rateGbps": 400.0
        }
      ],
      "rail": 0,
      "charDevices": [
        "/dev/infiniband/uverbs0"
      ],
      "usable": true,
      "reason": "",
      "troubles": [],
      "role": "pf",
      "address": ""
    }
  ],
  "gpus": [],
  "affinity": [],
  "nearest": []
}
)");
}

TEST(InventoryJson, HasEveryTroubleAndTheGravestAsReason) {
  Hca hca = MakeHca("mlx5_0", "", false);
  hca.health.Set(Stage::kSharedAddress, "it has the same address as mlx5_1");
  hca.health.Set(Stage::kHang, "reading it does not end");
  EXPECT_THAT(ToJson(Inventory({hca})), HasSubstr(R"(
      "usable": false,
      "reason": "reading it does not end",
      "troubles": [
        {
          "stage": "hang",
          "text": "reading it does not end"
        },
        {
          "stage": "rules",
          "text": "port 1 is DOWN"
        },
        {
          "stage": "shared-address",
          "text": "it has the same address as mlx5_1"
        }
      ],
)"));
}

TEST(InventoryJson, NamesThatAreNotUtf8DoNotBreakIt) {
  EXPECT_THAT(ToJson(Inventory({MakeHca("bad\xff\xfe", "")})), HasSubstr("bad"));
}

}  // namespace
}  // namespace railhead::fabric
