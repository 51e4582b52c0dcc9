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
using ::testing::Not;

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
    problems_ = Recognize(holdings_, map_, inventory_);
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
  std::vector<IdentityProblem> problems_;
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
  EXPECT_EQ(Look(renamed), "0:c-0000_01_00_0=c 1:d-0000_01_00_0=d");
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
            "0:siw1=siw1 1:siw8=siw8");
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
  EXPECT_EQ(Look({manager, MakeHca("b", kPciB)}), "0:b-0000_02_00_0=b -:a-0000_01_00_0=a!");
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
      "0:v-0000_01_00_1=v 1:b-0000_02_00_0=b 2:a-0000_01_00_0=a!");
  EXPECT_THAT(inventory_.hcas[2].health.reason(), HasSubstr("it shares the port of v"));
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

fabric::Hca Card(const std::string& name, const std::string& pci, const std::string& guid,
                 const std::string& netdev = "") {
  fabric::Hca hca = MakeHca(name, pci, netdev);
  hca.node_guid = guid;
  return hca;
}

// A card was added or has died, or the firmware numbers buses otherwise.
TEST_F(RailMapTest, ACardIsTheSameAtAnotherAddress) {
  for (const bool held : {false, true}) {
    map_ = {};
    Hold({});
    std::vector<fabric::Hca> before;
    std::vector<fabric::Hca> after;
    for (int i = 0; i < 8; ++i) {
      const std::string guid = absl::StrCat("0c42a1030000000", i);
      before.push_back(Card(absl::StrCat("m", i), absl::StrCat("0000:1", i, ":00.0"), guid));
      after.push_back(Card(absl::StrCat("m", i), absl::StrCat("0000:1", i + 1, ":00.0"), guid));
    }
    Look(before);
    if (held) Hold({"m3-0000_13_00_0"});
    map_ = ParseRailMap(ToJson(map_, kMachine), kMachine).value();
    Look(after);
    ASSERT_EQ(inventory_.hcas.size(), 8U) << "no card is missing";
    for (int i = 0; i < 8; ++i) {
      const fabric::Hca& hca = inventory_.hcas[static_cast<size_t>(i)];
      EXPECT_EQ(hca.rail, i);
      EXPECT_EQ(hca.name, absl::StrCat("m", i));
      EXPECT_EQ(hca.id, absl::StrCat("m", i, "-0000_1", i, "_00_0")) << "kubelet knows it";
      EXPECT_TRUE(hca.health.usable()) << hca.health.reason();
    }
    EXPECT_TRUE(problems_.empty());
  }
}

TEST_F(RailMapTest, AnotherOrderIsReportedUntilNothingIsHeld) {
  Look({Card("a", kPciA, "01"), Card("b", kPciB, "02")});
  Hold({"a-0000_01_00_0"});
  const std::vector<fabric::Hca> exchanged = {Card("b", kPciA, "02"), Card("a", kPciB, "01")};
  EXPECT_EQ(Look(exchanged), "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b");
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_EQ(problems_[0].kind, IdentityProblem::kRailOrder);
  EXPECT_THAT(problems_[0].message, HasSubstr("b (0000:01:00.0) is rail 1, not 0"));
  Hold({});
  EXPECT_EQ(Look(exchanged), "0:b-0000_02_00_0=b 1:a-0000_01_00_0=a");
  EXPECT_TRUE(problems_.empty());
}

TEST_F(RailMapTest, ACardWithAnotherGuidIsKnownByItsSerialNumber) {
  const auto with_serial = [](fabric::Hca hca, const std::string& serial) {
    hca.serial = serial;
    return hca;
  };
  Look({with_serial(Card("a", kPciA, "01"), "MT1"),
        with_serial(Card("b", "0000:01:00.1", "02"), "MT1")});
  Hold({"a-0000_01_00_0"});
  EXPECT_EQ(Look({with_serial(Card("a", kPciC, "03"), "MT1"),
                  with_serial(Card("b", "0000:03:00.1", "04"), "MT1")}),
            "0:a-0000_01_00_0=a 1:b-0000_01_00_1=b");
}

TEST_F(RailMapTest, AGuidOfTwoCardsIdentifiesNeither) {
  Look({Card("a", kPciA, "01"), Card("b", kPciB, "01")});
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_EQ(problems_[0].kind, IdentityProblem::kSharedGuid);
  EXPECT_THAT(problems_[0].message, HasSubstr("a (0000:01:00.0) and b (0000:02:00.0) have the "
                                              "same node GUID 01"));
  Hold({"a-0000_01_00_0"});
  EXPECT_EQ(Look({Card("b", kPciA, "01"), Card("a", kPciB, "01")}),
            "0:a-0000_01_00_0=b 1:b-0000_02_00_0=a")
      << "their addresses do";
}

TEST_F(RailMapTest, AnotherCardAtTheAddressOfOneThatMovedIsNotInDoubt) {
  Look({Card("a", kPciA, "01")});
  Hold({"a-0000_01_00_0"});
  EXPECT_EQ(Look({Card("b", kPciA, "02"), Card("a", kPciB, "01")}),
            "0:a-0000_01_00_0=a 1:b-0000_01_00_0=b");
}

TEST_F(RailMapTest, ACardThatReplacesAnotherTakesItsRail) {
  Look({Card("a", kPciA, "01"), Card("b", kPciB, "02")});
  EXPECT_EQ(Look({Card("a", kPciA, "03"), Card("b", kPciB, "02")}),
            "0:a-0000_01_00_0=a 1:b-0000_02_00_0=b");
}

// RoCE LAG, made after the agent has seen both ports.
TEST_F(RailMapTest, PortsOfABondAreTheBond) {
  const std::string second = "0000:01:00.1";
  Look(
      {Card("m0", kPciA, "01", "eth0"), Card("m1", second, "02", "eth1"), Card("m2", kPciB, "03")});
  fabric::Hca bond = Card("m_bond_0", kPciA, "01", "bond0");
  bond.role = fabric::HcaRole::kBond;
  bond.slaves = {"eth0", "eth1"};
  const std::vector<fabric::Hca> bonded = {bond, Card("m2", kPciB, "03")};
  // A pod has the second port.
  Hold({"m1-0000_01_00_1"});
  EXPECT_EQ(Look(bonded), "0:m0-0000_01_00_0=m_bond_0! 1:m1-0000_01_00_1=m1! 2:m2-0000_02_00_0=m2");
  EXPECT_EQ(inventory_.hcas[0].health.reason(),
            "it shares the port of m1 (0000:01:00.1), which a pod holds; it is offered after that "
            "pod has ended");
  Hold({});
  EXPECT_EQ(Look(bonded), "0:m0-0000_01_00_0=m_bond_0 1:m2-0000_02_00_0=m2") << "as if new";
  EXPECT_EQ(Look({Card("m0", kPciA, "01", "eth0"), Card("m1", second, "02", "eth1"), bonded[1]}),
            "0:m0-0000_01_00_0=m0 1:m1-0000_01_00_1=m1 2:m2-0000_02_00_0=m2");
}

TEST_F(RailMapTest, WhatSharesAHeldPortIsWithheld) {
  const auto look = [this](bool chosen) {
    std::vector<fabric::Hca> hcas = {MakeHca("a", kPciA)};
    for (const int i : {1, 2}) {
      hcas.push_back(VirtualFunction(absl::StrCat("v", i), absl::StrCat("0000:01:00.", i), kPciA));
      hcas.back().role = fabric::HcaRole::kVirtualFunction;
    }
    fabric::ChooseRails(hcas, [chosen](const fabric::Hca&) { return chosen; });
    return Look(hcas);
  };
  look(false);
  Hold({"a-0000_01_00_0"});
  EXPECT_EQ(look(true), "0:a-0000_01_00_0=a 1:v1-0000_01_00_1=v1! 2:v2-0000_01_00_2=v2!");
  EXPECT_THAT(inventory_.hcas[1].health.reason(),
              HasSubstr("it shares the port of a (0000:01:00.0), which a pod holds"));
  Hold({});
  look(true);
  Hold({"v1-0000_01_00_1"});
  EXPECT_THAT(look(true), HasSubstr("v2-0000_01_00_2=v2 ")) << "pods may have one each";
  EXPECT_THAT(look(false), HasSubstr("a-0000_01_00_0=a!"));
  EXPECT_THAT(look(false), Not(HasSubstr("v1-0000_01_00_1=v1!")));
}

// Each change of address left one more.
TEST_F(RailMapTest, VirtualFunctionsOfAVirtualMachineAreKnownByTheirNumber) {
  const auto functions = [](int first) {
    std::vector<fabric::Hca> hcas;
    for (int i = 0; i < 2; ++i) {
      hcas.push_back(MakeHca(absl::StrCat("v", i), absl::StrCat("0000:0", first + i, ":00.0")));
      hcas.back().role = fabric::HcaRole::kVirtualFunction;
    }
    return hcas;
  };
  Look(functions(1));
  EXPECT_EQ(Look(functions(5)), "0:v0-0000_01_00_0=v0 1:v1-0000_02_00_0=v1");
  Hold({"v0-0000_01_00_0"});
  Look(functions(7));
  EXPECT_EQ(inventory_.hcas.size(), 4U) << "which one the pod has is not known";
}

TEST(RailMapFile, OfAnEarlierVersionIsRead) {
  RailMap map;
  fabric::NodeInventory inventory;
  inventory.hcas = {Card("a", kPciA, "0c42a10300000001")};
  inventory.hcas[0].serial = "MT1";
  Recognize({}, map, inventory);
  const std::string text = ToJson(map, kMachine);
  EXPECT_EQ(ParseRailMap(text, kMachine)->hcas.at(0).node_guid, "0c42a10300000001");
  EXPECT_EQ(ParseRailMap(text, kMachine)->hcas.at(0).serial, "MT1");
  map.hcas[0].node_guid.clear();
  map.hcas[0].serial.clear();
  const std::string earlier = ToJson(map, kMachine);
  EXPECT_THAT(earlier, Not(HasSubstr("nodeGuid")));
  EXPECT_EQ(ParseRailMap(earlier, kMachine)->hcas.at(0).node_guid, "");
  // It learns the card at the first scan.
  map = ParseRailMap(earlier, kMachine).value();
  inventory.hcas = {Card("a", kPciA, "0c42a10300000001")};
  Recognize({}, map, inventory);
  EXPECT_EQ(map.hcas.at(0).node_guid, "0c42a10300000001");
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
