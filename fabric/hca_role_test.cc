// SPDX-License-Identifier: Apache-2.0
#include "fabric/hca_role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "fabric/hca_rules.h"
#include "fabric/inventory.h"
#include "fabric/sysfs_reader.h"
#include "fabric/testing/role_machines.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HcaRole, EachHasANameOfItsOwn) {
  for (int i = 0; i <= static_cast<int>(HcaRole::kDataDirect); ++i) {
    const auto role = static_cast<HcaRole>(i);
    EXPECT_EQ(ParseHcaRole(ToString(role)), role) << i;
  }
  EXPECT_EQ(ParseHcaRole("PF"), std::nullopt);
  EXPECT_THAT(RailRoleNames(), ElementsAre("pf", "bond", "vf", "sf", "software"));
}

TEST(HcaRole, PortsOfOtherFunctionsAreRepresentors) {
  for (const char* port : {"pf0vf1", "pf0sf88", "c1pf0vf0", "pf0hpf", "pf1"}) {
    EXPECT_TRUE(IsRepresentorPort(port)) << port;
  }
  for (const char* port : {"", "p0", "p1", "c", "c1", "c1p0", "1pf0"}) {
    EXPECT_FALSE(IsRepresentorPort(port)) << port;
  }
}

class RoleMachineTest : public ::testing::TestWithParam<testing::RoleMachine> {};

TEST_P(RoleMachineTest, RolesAndRailsAreWhatPeopleWouldSay) {
  const testing::SysfsTree tree;
  Build(GetParam(), tree);
  const absl::StatusOr<NodeInventory> inventory = ReadInventory(tree.root());
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  ASSERT_EQ(inventory->hcas.size(), GetParam().devices.size());
  std::map<std::string, const Hca*> by_name;
  for (const Hca& hca : inventory->hcas) by_name[hca.name] = &hca;
  for (const testing::RoleDevice& device : GetParam().devices) {
    const Hca& hca = *by_name.at(device.name);
    EXPECT_EQ(absl::StrCat(hca.rail < 0 ? "-" : absl::StrCat(hca.rail), " ", ToString(hca.role)),
              device.says)
        << device.name;
    EXPECT_EQ(hca.health.usable(), hca.offered) << device.name << ": " << hca.health.reason();
    EXPECT_EQ(hca.offered, TroubleOf(hca, PodNetwork::kHost).empty()) << hca.health.reason();
  }
}

INSTANTIATE_TEST_SUITE_P(All, RoleMachineTest, ::testing::ValuesIn(testing::RoleMachines()));

TEST(SwitchManagement, IsReadOnceAndTold) {
  const testing::SysfsTree tree;
  Build(testing::RoleMachines()[1], tree);
  KnownVpd known;
  ASSERT_TRUE(ReadInventory(tree.root(), DefaultGpuVendors(), &known).ok());
  EXPECT_EQ(known.size(), 2U) << "what cannot be read is not known";
  // Not read once more.
  tree.Write("/sys/devices/pci0000:00/0000:05:00.0/vpd", "nothing");
  const absl::StatusOr<NodeInventory> again =
      ReadInventory(tree.root(), DefaultGpuVendors(), &known);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->hcas.back().role, HcaRole::kSwitchManagement);
  EXPECT_THAT(again->hcas.back().health.reason(), HasSubstr("NVLink switches"));
  // Until the card is another one.
  testing::FakeHca gone;
  gone.name = "ibp5s0";
  gone.uverbs = 8;
  tree.RemoveHca(gone);
  ASSERT_TRUE(ReadInventory(tree.root(), DefaultGpuVendors(), &known).ok());
  EXPECT_EQ(known.size(), 1U);
}

// Of which the role, and with it the rails of others, depends.
TEST(SwitchManagement, AFailedReadDecidesNothing) {
  const testing::SysfsTree tree;
  Build(testing::RoleMachines()[1], tree);
  const std::string vpd = "/sys/devices/pci0000:00/0000:05:00.0/vpd";
  tree.Remove(vpd);
  tree.MakeFolder(vpd);
  KnownVpd known;
  for (int i = 1; i < kMaxVpdReads; ++i) {
    const absl::StatusOr<NodeInventory> failed =
        ReadInventory(tree.root(), DefaultGpuVendors(), &known);
    EXPECT_THAT(std::string(failed.status().message()),
                HasSubstr("cannot read the vital product data of ibp5s0, trying again"));
  }
  KnownVpd recovered = known;
  // A card whose data cannot be read at all is a rail, and stays one.
  const auto role_of_it = [&tree](KnownVpd* vpds) {
    const absl::StatusOr<NodeInventory> read =
        ReadInventory(tree.root(), DefaultGpuVendors(), vpds);
    if (!read.ok()) return std::string(read.status().message());
    for (const Hca& hca : read->hcas) {
      if (hca.name == "ibp5s0") return std::string(ToString(hca.role));
    }
    return std::string("gone");
  };
  EXPECT_EQ(role_of_it(&known), "pf");
  EXPECT_EQ(role_of_it(nullptr), "pf") << "without a second scan";
  tree.Remove(vpd);
  tree.Write(vpd, "SMDL=SW_MNG");
  EXPECT_EQ(role_of_it(&known), "pf");
  EXPECT_EQ(role_of_it(&recovered), "nvlink-switch");
}

}  // namespace
}  // namespace railhead::fabric
