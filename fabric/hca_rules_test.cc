// SPDX-License-Identifier: Apache-2.0
#include "fabric/hca_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/inventory.h"

namespace railhead::fabric {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Hca RoceHca(const std::string& name = "mlx5_0", const std::string& pci = "0000:18:00.0") {
  Hca hca;
  hca.name = name;
  hca.pci_address = pci;
  hca.netdev = "eth0";
  hca.interface_here = true;
  hca.ports = {{1, "ACTIVE", "Ethernet", 400}};
  hca.address = AddressKind::kRoutable;
  return hca;
}

constexpr PodNetwork kNetworks[] = {PodNetwork::kUnknown, PodNetwork::kHost, PodNetwork::kAttached,
                                    PodNetwork::kMoved};

// By network, in the order above: '+' where nothing is wrong.
std::string Well(const Hca& hca) {
  std::string well;
  for (const PodNetwork network : kNetworks) well += TroubleOf(hca, network).empty() ? '+' : '-';
  return well;
}

TEST(HcaRules, AddressesMatterByNetwork) {
  Hca hca = RoceHca();
  EXPECT_EQ(Well(hca), "++++");
  hca.address = AddressKind::kLinkLocal;
  EXPECT_EQ(Well(hca), "+-++");
  EXPECT_THAT(TroubleOf(hca, PodNetwork::kHost),
              HasSubstr("give its interface eth0 an IP address"));
  EXPECT_THAT(TroubleOf(hca, PodNetwork::kHost), HasSubstr("network: attached"));
  hca.address = AddressKind::kNone;
  EXPECT_EQ(Well(hca), "+--+");
  EXPECT_EQ(TroubleOf(hca, PodNetwork::kAttached),
            "port 1 has no RoCE v2 entry in its GID table; give its interface eth0 an IP address, "
            "and check that it is up");
  hca.address = AddressKind::kUnknown;
  EXPECT_EQ(Well(hca), "++++") << "its table cannot be seen";
}

TEST(HcaRules, AnInterfaceThatIsMovedMayBeDown) {
  Hca hca = RoceHca();
  hca.ports[0].state = "DOWN";
  hca.address = AddressKind::kNone;
  EXPECT_EQ(Well(hca), "----");
  EXPECT_THAT(TroubleOf(hca, PodNetwork::kMoved), HasSubstr("check the cable"));
  hca.set_down = true;
  EXPECT_EQ(Well(hca), "---+");
  EXPECT_THAT(TroubleOf(hca, PodNetwork::kHost), HasSubstr("ip link set eth0 up"));
  EXPECT_THAT(TroubleOf(hca, PodNetwork::kHost), Not(HasSubstr("cable")));
  EXPECT_THAT(TroubleOf(hca, PodNetwork::kHost), Not(HasSubstr("GID table"))) << "one advice";
  hca.set_down = false;
  hca.interface_here = false;
  EXPECT_EQ(Well(hca), "---+") << "it is in a pod";
}

TEST(HcaRules, InitMeansThatNoSubnetManagerHasSeenThePort) {
  Hca hca = RoceHca();
  hca.ports = {{1, "INIT", "InfiniBand", 400, "LinkUp"}};
  EXPECT_EQ(Well(hca), "----");
  EXPECT_THAT(TroubleOf(hca, PodNetwork::kHost), HasSubstr("port 1 is INIT, its link LinkUp"));
  EXPECT_THAT(TroubleOf(hca, PodNetwork::kHost), HasSubstr("subnet manager"));
}

TEST(HcaRules, EverythingIsToldInTheTablesOrder) {
  Hca hca = RoceHca("a b");
  hca.ports[0].state = "DOWN";
  hca.physical_function = "0000:17:00.0";
  hca.orphan = true;
  hca.device_trouble = "no device node";
  EXPECT_EQ(TroubleOf(hca, PodNetwork::kHost),
            "its name contains characters other than letters, digits, '_', '-' and '.'; it is a "
            "virtual function of 0000:17:00.0, which is not on the PCI bus; create the virtual "
            "functions again, or reboot the node; no port is ACTIVE (port 1 is DOWN); check "
            "the cable, the switch port and the interface's state; no device node");
}

TEST(HcaRules, WhatIsMissingIsNotJudged) {
  Hca hca = RoceHca();
  hca.present = false;
  hca.health.Set(Stage::kMissing, "it has vanished");
  Judge(hca, PodNetwork::kHost);
  EXPECT_EQ(hca.health.reason(), "it has vanished");
}

TEST(HcaRules, TwoWithOneAddressAreTold) {
  std::vector<Hca> hcas = {RoceHca(), RoceHca("mlx5_1", "0000:19:00.0"),
                           RoceHca("mlx5_2", "0000:1a:00.0")};
  for (Hca& hca : hcas) {
    hca.host_gid = "0000:0000:0000:0000:0000:ffff:0a00:0001";
  }
  hcas[2].host_gid = "0000:0000:0000:0000:0000:ffff:0a00:0002";
  const std::vector<Hca> before = hcas;
  JudgeTogether(hcas, {PodNetwork::kHost, PodNetwork::kMoved, PodNetwork::kHost});
  EXPECT_EQ(hcas, before) << "a pod's interface may have any address";
  JudgeTogether(hcas, {PodNetwork::kHost, PodNetwork::kHost, PodNetwork::kHost});
  EXPECT_THAT(hcas[0].health.reason(), HasSubstr("the same address as mlx5_1 (0000:19:00.0)"));
  EXPECT_THAT(hcas[1].health.reason(), HasSubstr("the same address as mlx5_0 (0000:18:00.0)"));
  EXPECT_FALSE(hcas[0].health.usable() || hcas[1].health.usable());
  EXPECT_TRUE(hcas[2].health.usable());
}

class ChooseRailsTest : public ::testing::Test {
 protected:
  ChooseRailsTest() : hcas_(4, RoceHca()) {
    hcas_[1].name = "vf0";
    hcas_[1].pci_address = "0000:18:00.1";
    hcas_[1].physical_function = "0000:18:00.0";
    hcas_[1].role = HcaRole::kVirtualFunction;
    hcas_[2] = hcas_[1];
    hcas_[2].name = "vf1";
    hcas_[2].pci_address = "0000:18:00.2";
    hcas_[3].name = "rxe0";
    hcas_[3].pci_address = "0000:18:00.1";
    hcas_[3].part = "soft";
    hcas_[3].role = HcaRole::kSoftware;
  }
  // The names of the rails, where those of this name are wanted.
  std::string Rails(const std::string& chosen) {
    ChooseRails(hcas_, [&chosen](const Hca& hca) { return hca.name == chosen; });
    std::vector<std::string> rails;
    for (const Hca& hca : hcas_) {
      if (hca.offered) rails.push_back(hca.name);
    }
    return absl::StrJoin(rails, " ");
  }

  std::vector<Hca> hcas_;
};

TEST_F(ChooseRailsTest, OnePortIsOneRail) {
  EXPECT_EQ(Rails(""), "mlx5_0");
  EXPECT_EQ(TroubleOf(hcas_[1], PodNetwork::kHost),
            "it shares the port of 0000:18:00.0, which is the rail");
  EXPECT_EQ(Rails("vf1"), "vf1") << "and its PF is not";
  EXPECT_EQ(TroubleOf(hcas_[0], PodNetwork::kHost),
            "it shares the port of vf1 (0000:18:00.2), which is the rail");
  EXPECT_EQ(Rails(""), "mlx5_0") << "nothing is left of the choice before";
}

TEST_F(ChooseRailsTest, VirtualFunctionsAloneAreRails) {
  hcas_.erase(hcas_.begin());
  EXPECT_EQ(Rails(""), "vf0 vf1");
}

TEST_F(ChooseRailsTest, AFunctionInSwitchdevModeLeavesThemThePort) {
  hcas_[0].role = HcaRole::kSwitchdevFunction;
  EXPECT_EQ(Rails(""), "vf0 vf1");
}

TEST(RailLimit, TheSixtyFifthIsNoRail) {
  std::vector<Hca> hcas;
  for (int i = 0; i < kHighestRail + 2; ++i) {
    hcas.push_back(RoceHca(absl::StrCat("efa", i), ""));
  }
  AssignRails(hcas);
  EXPECT_TRUE(hcas[kHighestRail].offered);
  EXPECT_EQ(hcas[kHighestRail].rail, kHighestRail);
  EXPECT_FALSE(hcas.back().offered);
  EXPECT_EQ(hcas.back().rail, -1);
  EXPECT_THAT(TroubleOf(hcas.back(), PodNetwork::kHost), HasSubstr("more than 64 rails"));
}

}  // namespace
}  // namespace railhead::fabric
