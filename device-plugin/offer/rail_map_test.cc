// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/rail_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/holdings/holdings.h"
#include "fabric/hca_role.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"
#include "fabric/sysfs_reader.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::device_plugin {
namespace {

using ::testing::HasSubstr;

const Machine kMachine = {"node-1", "board-1"};

fabric::Hca MakeHca(const std::string& name, const std::string& pci,
                    const std::string& netdev = "") {
  fabric::Hca hca;
  hca.name = name;
  hca.pci_address = pci;
  hca.netdev = netdev;
  hca.vendor = "15b3";
  hca.ports = {{1, "ACTIVE", "Ethernet", 400, "LinkUp"}};
  hca.char_devices = {"/dev/infiniband/uverbs0"};
  return hca;
}

fabric::Hca VirtualFunction(const std::string& name, const std::string& pci,
                            const std::string& physical) {
  fabric::Hca hca = MakeHca(name, pci);
  hca.physical_function = physical;
  return hca;
}

class RailMapTest : public ::testing::Test {
 protected:
  // Rail, id and name of each, "!" where it is not usable, and "-" where it is no rail.
  std::string Look(std::vector<fabric::Hca> hcas) {
    inventory_.hcas = std::move(hcas);
    Recognize(holdings_, map_, inventory_);
    return absl::StrJoin(inventory_.hcas, " ", [](std::string* out, const fabric::Hca& hca) {
      absl::StrAppend(out, hca.offered ? absl::StrCat(hca.rail) : "-", ":", DeviceId(hca), "=",
                      hca.name, hca.health.usable() ? "" : "!");
    });
  }

  void Hold(std::set<std::string> ids) {
    holdings_.bound = ids;
    holdings_.by_resource["rdma/hca"] = std::move(ids);
  }

  RailMap map_;
  fabric::NodeInventory inventory_;
  Holdings holdings_ = {.complete = true};
};

const std::string kPciA = "0000:01:00.0";
const std::string kPciB = "0000:02:00.0";
const std::string kPciC = "0000:03:00.0";

TEST_F(RailMapTest, NamesMayBeExchanged) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciB)});
  EXPECT_EQ(Look({MakeHca("b", kPciA), MakeHca("a", kPciB)}),
            "0:a-0000_01_00_0=b 1:b-0000_02_00_0=a");
}

TEST_F(RailMapTest, WhatIsMissingKeepsItsPlace) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciB)});
  EXPECT_EQ(Look({MakeHca("b", kPciB)}), "0:a-0000_01_00_0=a! 1:b-0000_02_00_0=b");
  EXPECT_THAT(inventory_.hcas[0].health.reason(), HasSubstr("has disappeared from"));
  EXPECT_TRUE(inventory_.hcas[0].char_devices.empty());
  EXPECT_EQ(inventory_.hcas[0].ports[0].state, "UNKNOWN");
  // Also for a new agent, which knows the same of it.
  absl::StatusOr<RailMap> map = ParseRailMap(ToJson(map_, kMachine), kMachine);
  ASSERT_TRUE(map.ok()) << map.status();
  map_ = *std::move(map);
  EXPECT_EQ(Look({MakeHca("b", kPciB)}), "0:a-0000_01_00_0=a! 1:b-0000_02_00_0=b");
  EXPECT_EQ(inventory_.hcas[0].vendor, "15b3");
  EXPECT_EQ(inventory_.hcas[0].ports[0].link_layer, "Ethernet");
}

TEST_F(RailMapTest, ANewOneTakesItsPlaceWhenNothingIsHeld) {
  Look({MakeHca("a", kPciA), MakeHca("c", kPciC)});
  Hold({"c-0000_03_00_0"});
  EXPECT_EQ(Look({MakeHca("a", kPciA), MakeHca("b", kPciB), MakeHca("c", kPciC)}),
            "0:a-0000_01_00_0=a 1:c-0000_03_00_0=c 2:b-0000_02_00_0=b");
  Hold({});
  holdings_.complete = false;
  EXPECT_THAT(Look({MakeHca("a", kPciA), MakeHca("b", kPciB), MakeHca("c", kPciC)}),
              HasSubstr("2:b-"));
  holdings_.complete = true;
  EXPECT_EQ(Look({MakeHca("a", kPciA), MakeHca("b", kPciB), MakeHca("c", kPciC)}),
            "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b 2:c-0000_03_00_0=c");
}

TEST_F(RailMapTest, SeveralDevicesOfAFunctionAreToldApartByTheirNames) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciA)});
  EXPECT_EQ(Look({MakeHca("a", kPciA), MakeHca("c", kPciA)}),
            "0:a-0000_01_00_0=a 1:b-0000_01_00_0=c");
  // The old name of one is the new one of another.
  EXPECT_EQ(Look({MakeHca("a", kPciA), MakeHca("b", kPciA), MakeHca("c", kPciA)}),
            "0:a-0000_01_00_0=a 1:b-0000_01_00_0=c 2:b.2-0000_01_00_0=b");
}

TEST_F(RailMapTest, WhatMayBeInAPodUnderAnotherNameIsGivenToNobody) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciA)});
  Hold({"a-0000_01_00_0"});
  const std::vector<fabric::Hca> renamed = {MakeHca("c", kPciA), MakeHca("d", kPciA)};
  EXPECT_EQ(Look(renamed), "0:a-0000_01_00_0=a! 1:c-0000_01_00_0=c! 2:d-0000_01_00_0=d!");
  EXPECT_THAT(inventory_.hcas[1].health.reason(), HasSubstr("a-0000_01_00_0"));
  map_ = ParseRailMap(ToJson(map_, kMachine), kMachine).value();
  EXPECT_THAT(Look(renamed), HasSubstr("=c! 2:d-0000_01_00_0=d!"));
  Hold({});
  EXPECT_EQ(Look(renamed), "1:c-0000_01_00_0=c 2:d-0000_01_00_0=d");
}

TEST_F(RailMapTest, ASoftwareDeviceThatIsRenamedHasNoSecondOwner) {
  Look({MakeHca("siw0", "", "eth0"), MakeHca("siw1", "", "eth1")});
  Hold({"siw0"});
  EXPECT_EQ(Look({MakeHca("siw7", "", "eth0"), MakeHca("siw1", "", "eth1")}),
            "0:siw0=siw7 1:siw1=siw1");
  // With its interface in the pod.
  for (const char* netdev : {"", "net1"}) {
    EXPECT_EQ(Look({MakeHca("siw8", "", netdev), MakeHca("siw1", "", "eth1")}),
              "0:siw0=siw7! 1:siw1=siw1 2:siw8=siw8!");
    EXPECT_THAT(inventory_.hcas[2].health.reason(), HasSubstr("a pod may hold this one as siw0"));
  }
  Hold({});
  EXPECT_EQ(Look({MakeHca("siw8", "", "eth0"), MakeHca("siw1", "", "eth1")}),
            "1:siw1=siw1 2:siw8=siw8")
      << "the others stay where they are";
}

TEST_F(RailMapTest, AVirtualFunctionIsNoRailBesideItsPhysicalOne) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciB)});
  EXPECT_EQ(
      Look({MakeHca("a", kPciA), VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)}),
      "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b -:v-0000_01_00_1=v!");
  // Also while its driver is loaded anew.
  EXPECT_THAT(Look({VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)}),
              HasSubstr("-:v-"));
}

TEST_F(RailMapTest, VirtualFunctionsMayBeChosenInPlaceOfTheirPhysicalOne) {
  const auto look = [this](bool chosen) {
    std::vector<fabric::Hca> hcas = {
        MakeHca("a", kPciA), VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)};
    hcas[1].role = fabric::HcaRole::kVirtualFunction;
    fabric::ChooseRails(hcas, [chosen](const fabric::Hca&) { return chosen; });
    return Look(hcas);
  };
  EXPECT_EQ(look(false), "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b -:v-0000_01_00_1=v!");
  EXPECT_EQ(look(true), "0:v-0000_01_00_1=v 1:b-0000_02_00_0=b -:a-0000_01_00_0=a!");
  EXPECT_EQ(look(true), "0:v-0000_01_00_1=v 1:b-0000_02_00_0=b -:a-0000_01_00_0=a!") << "no ghost";
  Hold({"v-0000_01_00_1"});
  map_ = ParseRailMap(ToJson(map_, kMachine), kMachine).value();
  EXPECT_EQ(Look({MakeHca("b", kPciB)}), "0:v-0000_01_00_1=v! 1:b-0000_02_00_0=b");
  EXPECT_EQ(inventory_.hcas[0].role, fabric::HcaRole::kVirtualFunction) << "also over a restart";
  // The pod may have taken it out of the host's sight.
  EXPECT_EQ(Look({MakeHca("a", kPciA), MakeHca("b", kPciB)}),
            "0:v-0000_01_00_1=v! 1:b-0000_02_00_0=b -:a-0000_01_00_0=a!");
  EXPECT_THAT(inventory_.hcas[2].health.reason(), HasSubstr("v (0000:01:00.1, in a pod)"));
  Hold({});
  EXPECT_EQ(Look({MakeHca("a", kPciA), MakeHca("b", kPciB)}),
            "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b");
  EXPECT_EQ(look(false), "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b -:v-0000_01_00_1=v!");
}

TEST_F(RailMapTest, APhysicalFunctionThatGoesIntoSwitchdevModeIsNotMissing) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciB)});
  for (int i = 0; i < 2; ++i) {
    fabric::Hca pf = MakeHca("a", kPciA);
    pf.role = fabric::HcaRole::kSwitchdevFunction;
    pf.offered = false;
    Look({pf, VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)});
  }
  EXPECT_EQ(absl::StrCat(inventory_.hcas[0].name, inventory_.hcas[1].name), "vb");
  EXPECT_EQ(map_.hcas.size(), 2U);
}

// A map of an agent that could not read what it is.
TEST_F(RailMapTest, AFunctionThatManagesSwitchesIsNotMissing) {
  Look({MakeHca("a", kPciA), MakeHca("b", kPciB)});
  fabric::Hca manager = MakeHca("a", kPciA);
  manager.role = fabric::HcaRole::kSwitchManagement;
  manager.offered = false;
  manager.health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  EXPECT_EQ(Look({manager, MakeHca("b", kPciB)}), "1:b-0000_02_00_0=b -:a-0000_01_00_0=a!");
}

// Only the place of an HCA that hangs is known when the agent starts.
TEST_F(RailMapTest, AnHcaThatHangsIsWhatItWas) {
  const fabric::testing::SysfsTree tree;
  fabric::testing::FakeHca fake;
  fake.name = "a";
  fake.pci = kPciA;
  tree.AddHca(fake);
  fabric::Hca bond = MakeHca("a", kPciA, "bond0");
  bond.role = fabric::HcaRole::kBond;
  Look({bond, MakeHca("b", kPciB)});
  const fabric::Hca hung =
      fabric::ReadInventory(tree.root(), {}, nullptr, {}, {{"a", {}}}).value().hcas[0];
  ASSERT_TRUE(hung.health.Has(fabric::Stage::kHang));
  EXPECT_EQ(Look({hung, MakeHca("b", kPciB)}), "0:a-0000_01_00_0=a! 1:b-0000_02_00_0=b");
  EXPECT_EQ(inventory_.hcas[0].netdev, "bond0");
  EXPECT_EQ(inventory_.hcas[0].role, fabric::HcaRole::kBond);
  EXPECT_EQ(inventory_.hcas[0].ports.at(0).link_layer, "Ethernet");
  // It may vanish as well.
  EXPECT_EQ(Look({MakeHca("b", kPciB)}), "0:a-0000_01_00_0=a! 1:b-0000_02_00_0=b");
  EXPECT_THAT(inventory_.hcas[0].health.reason(), HasSubstr("has disappeared from"));
}

TEST_F(RailMapTest, TheSixtyFifthHcaIsNoRail) {
  std::vector<fabric::Hca> hcas;
  for (int i = 0; i <= fabric::kHighestRail + 1; ++i) {
    hcas.push_back(MakeHca(absl::StrCat("efa", i), absl::StrCat("0000:", 10 + i, ":00.0")));
  }
  Look(hcas);
  EXPECT_EQ(inventory_.hcas.back().rail, -1);
  EXPECT_FALSE(inventory_.hcas.back().offered);
  EXPECT_THAT(inventory_.hcas.back().health.reason(), HasSubstr("more than 64 rails"));
  EXPECT_TRUE(ParseRailMap(ToJson(map_, kMachine), kMachine).ok());
}

TEST_F(RailMapTest, VirtualFunctionsAloneAreRailsWhileTheyAreThere) {
  EXPECT_EQ(Look({VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)}),
            "0:v-0000_01_00_1=v 1:b-0000_02_00_0=b");
  Hold({"v-0000_01_00_1"});
  EXPECT_EQ(Look({MakeHca("b", kPciB)}), "0:v-0000_01_00_1=v! 1:b-0000_02_00_0=b");
  // Its physical function gets a driver while a pod holds it.
  EXPECT_EQ(
      Look({MakeHca("a", kPciA), VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)}),
      "0:v-0000_01_00_1=v 1:b-0000_02_00_0=b 2:a-0000_01_00_0=a");
  Hold({});
  EXPECT_EQ(
      Look({MakeHca("a", kPciA), VirtualFunction("v", "0000:01:00.1", kPciA), MakeHca("b", kPciB)}),
      "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b -:v-0000_01_00_1=v!");
}

TEST_F(RailMapTest, TheHostsNameOfAnInterfaceStaysWhileAPodHasIt) {
  Look({MakeHca("a", kPciA, "eth0")});
  Hold({"a-0000_01_00_0"});
  for (const char* netdev : {"", "net1"}) {  // in the pod; and back, not yet renamed
    Look({MakeHca("a", kPciA, netdev)});
    EXPECT_EQ(inventory_.hcas[0].netdev, "eth0");
  }
  Hold({});
  Look({MakeHca("a", kPciA, "")});
  EXPECT_EQ(inventory_.hcas[0].netdev, "eth0");
  Look({MakeHca("a", kPciA, "ens1f0")});
  EXPECT_EQ(inventory_.hcas[0].netdev, "ens1f0");
}

TEST(RailMapFile, WhatIsNoMapOfThisMachineIsRefusedWithTheReason) {
  RailMap map;
  fabric::NodeInventory inventory;
  inventory.hcas = {MakeHca("a", kPciA), MakeHca("siw0", "")};
  Recognize({}, map, inventory);
  const std::string text = ToJson(map, kMachine);
  ASSERT_TRUE(ParseRailMap(text, kMachine).ok());
  EXPECT_EQ(ToJson(*ParseRailMap(text, kMachine), kMachine), text);
  EXPECT_TRUE(ParseRailMap(text, {"node-1", ""}).ok()) << "the board cannot be read";
  EXPECT_THAT(std::string(ParseRailMap(text, {"node-2", "board-1"}).status().message()),
              HasSubstr("another machine"));
  EXPECT_THAT(std::string(ParseRailMap(text, {"node-1", "board-2"}).status().message()),
              HasSubstr("board-2"));
  for (size_t end = 0; end + 1 < text.size(); ++end) {
    EXPECT_FALSE(ParseRailMap(text.substr(0, end), kMachine).ok()) << end;
  }
  std::mt19937 random(5);
  for (int i = 0; i < 5000; ++i) {
    std::string torn = text;
    torn[random() % torn.size()] = static_cast<char>(random());
    const absl::StatusOr<RailMap> read = ParseRailMap(torn, kMachine);
    if (!read.ok()) continue;
    std::set<int> rails;
    for (const fabric::Hca& hca : read->hcas) EXPECT_TRUE(rails.insert(hca.rail).second);
  }
}

}  // namespace
}  // namespace railhead::device_plugin
