// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/renumbering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/inventory.h"
#include "fabric/pod_rails.h"

namespace railhead::device_plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Node(int number) { return absl::StrCat("/dev/infiniband/uverbs", number); }

fabric::Hca Mlx5Nic(int number) {
  fabric::Hca hca;
  hca.name = absl::StrCat("mlx5_", number);
  hca.pci_address = absl::StrCat("0000:0", number + 1, ":00.0");
  hca.char_devices = {Node(number)};
  return hca;
}

// Four NICs, mlx5_0 to mlx5_3, which had the device nodes of their numbers when they were given.
class RenumberingTest : public ::testing::Test {
 protected:
  RenumberingTest() {
    for (int i = 0; i < 4; ++i) inventory_.hcas.push_back(Mlx5Nic(i));
  }

  static Grant Given(const std::vector<int>& numbers) {
    Grant grant{"uid", {"team", "a", "main", {}}, {}, {}};
    for (const int number : numbers) {
      fabric::PodRail rail;
      rail.rail = number;
      rail.device = absl::StrCat("mlx5_", number);
      rail.pci_address = Mlx5Nic(number).pci_address;
      rail.char_devices = {Node(number)};
      grant.rails.push_back(rail);
    }
    return grant;
  }
  void Exchange(size_t a, size_t b) {
    std::swap(inventory_.hcas[a].char_devices, inventory_.hcas[b].char_devices);
  }
  // Names of affected HCAs, by id.
  std::string Affected(const Grant& grant) const {
    const std::optional<Renumbering> found = FindRenumbering(grant, inventory_);
    if (!found.has_value()) return "";
    return absl::StrJoin(found->hcas, " ", [](std::string* out, const auto& hca) {
      absl::StrAppend(out, hca.first.substr(0, hca.first.find('-')));
    });
  }

  fabric::NodeInventory inventory_;
};

TEST_F(RenumberingTest, WhatIsStillCalledSoIsWell) {
  EXPECT_EQ(Affected(Given({0})), "");
  EXPECT_EQ(Affected(Given({0, 1, 2, 3})), "");
  EXPECT_EQ(Affected(Given({})), "");
}

TEST_F(RenumberingTest, TheMessageNamesTheHcaBothNodesAndTheFix) {
  Exchange(0, 1);
  const std::optional<Renumbering> found = FindRenumbering(Given({0}), inventory_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->message,
            "device nodes have changed: mlx5_0-0000_01_00_0 was given as mlx5_0 "
            "(/dev/infiniband/uverbs0), and is now mlx5_0 (/dev/infiniband/uverbs1); it can open "
            "mlx5_1-0000_02_00_0 (/dev/infiniband/uverbs0), which it was not given; delete the "
            "pod, so that it is given devices again");
  EXPECT_EQ(found->hcas.at("mlx5_1-0000_02_00_0"),
            "container main of pod team/a can open it, as it was given another HCA by "
            "/dev/infiniband/uverbs0; delete that pod, so that it is given devices again");
  EXPECT_THAT(found->hcas.at("mlx5_0-0000_01_00_0"), HasSubstr("delete that pod"));
}

TEST_F(RenumberingTest, AnyNodeOfAnotherHcaCounts) {
  Exchange(1, 2);
  EXPECT_EQ(Affected(Given({0})), "");
  EXPECT_EQ(Affected(Given({1})), "mlx5_1 mlx5_2");
  EXPECT_EQ(Affected(Given({0, 2})), "mlx5_1 mlx5_2");
  inventory_.hcas[0].char_devices = {Node(7)};
  EXPECT_EQ(Affected(Given({0})), "mlx5_0") << "it cannot open its own";
}

// A program finds the device node of an HCA by its name.
TEST_F(RenumberingTest, NodesMayBeExchangedInsideAContainerButNamesMayNot) {
  Exchange(0, 1);
  EXPECT_EQ(Affected(Given({0, 1})), "");
  std::swap(inventory_.hcas[0].name, inventory_.hcas[1].name);
  EXPECT_EQ(Affected(Given({0, 1})), "mlx5_0 mlx5_1") << "each has the name of the other";
  // A new name that is no other's misleads nobody.
  inventory_.hcas[0] = Mlx5Nic(0);
  inventory_.hcas[1] = Mlx5Nic(1);
  inventory_.hcas[0].name = "rocep1s0";
  EXPECT_EQ(Affected(Given({0, 1})), "");
}

TEST_F(RenumberingTest, AMissingHcaAloneIsNoContradiction) {
  inventory_.hcas[0].char_devices.clear();
  inventory_.hcas[0].present = false;
  EXPECT_EQ(Affected(Given({0})), "");
  inventory_.hcas[1].char_devices = {Node(0)};
  EXPECT_EQ(Affected(Given({0})), "mlx5_1") << "another has its number";
}

TEST_F(RenumberingTest, AnHcaIsRecognizedByItsFunctionAndTwinsByTheirNames) {
  inventory_.hcas[0].name = "rocep1s0";
  inventory_.hcas[0].char_devices = {Node(9)};
  EXPECT_THAT(FindRenumbering(Given({0}), inventory_)->message, HasSubstr("rocep1s0"));
  // Two devices of one function, of which neither has the name any longer.
  inventory_.hcas[0] = Mlx5Nic(0);
  inventory_.hcas.push_back(Mlx5Nic(0));
  inventory_.hcas[0].name = "twin0";
  inventory_.hcas[0].char_devices = {Node(8)};
  inventory_.hcas.back().name = "twin1";
  inventory_.hcas.back().char_devices = {Node(9)};
  EXPECT_EQ(Affected(Given({0})), "") << "it is not known which one was given";
  inventory_.hcas.back().name = "mlx5_0";
  EXPECT_THAT(FindRenumbering(Given({0}), inventory_)->message,
              HasSubstr("mlx5_0 (/dev/infiniband/uverbs9)"));
}

TEST_F(RenumberingTest, AffectedHcasAreWithheldWithTheReason) {
  Exchange(0, 1);
  inventory_.hcas[1].health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  EXPECT_EQ(WithholdRenumbered({Given({0}), Given({2})}, inventory_).size(), 1U);
  EXPECT_FALSE(inventory_.hcas[0].health.usable());
  const std::map<std::string, std::string> why = FindRenumbering(Given({0}), inventory_)->hcas;
  EXPECT_EQ(inventory_.hcas[0].health.reason(), why.at("mlx5_0-0000_01_00_0"));
  EXPECT_EQ(inventory_.hcas[1].health.reason(), "port 1 is DOWN") << "the graver one";
  EXPECT_EQ(inventory_.hcas[1].health.Text(), "port 1 is DOWN; " + why.at("mlx5_1-0000_02_00_0"));
  EXPECT_TRUE(inventory_.hcas[2].health.usable());
}

TEST(GrantsTest, AreThoseOfContainersWithAllTheirResources) {
  const std::vector<CheckpointEntry> checkpoint = {
      {"u1", "rdma/hca", {"a"}, "", "init", "r1"},
      {"u1", "rdma/hca", {"a"}, "", "main", "r1"},
      {"u1", "rdma/two", {"b"}, "", "main", "r2"},
      {"u1", "gpu", {"g"}, "", "main", ""},
      {"u2", "rdma/hca", {"c", "d"}, "", "main", "r3"}};
  const std::vector<Grant> grants = GrantsIn(checkpoint);
  ASSERT_EQ(grants.size(), 3U);
  EXPECT_THAT(grants[1].rails_files, ElementsAre("r1", "r2"));
  EXPECT_THAT(GrantsOf(grants, "rdma/hca", {"a"}), ElementsAre(grants[0], grants[1]));
  EXPECT_THAT(GrantsOf(grants, "rdma/hca", {"c"}), IsEmpty());
  EXPECT_THAT(GrantsOf(grants, "rdma/three", {"a"}), IsEmpty());

  const std::vector<ContainerDevices> listed = {
      {"team", "one", "main", {{"rdma/hca", {"a"}}, {"rdma/two", {"b"}}, {"gpu", {"g"}}}},
      {"team", "two", "main", {{"rdma/hca", {"d"}}}}};
  const std::vector<Grant> live = LiveGrants(grants, listed, /*complete=*/true);
  ASSERT_EQ(live.size(), 2U);
  for (const Grant& grant : live) EXPECT_EQ(grant.holder.pod, "one");
  const std::vector<Grant> all = LiveGrants(grants, listed, /*complete=*/false);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].holder.pod, "");
  EXPECT_EQ(all[2].pod_uid, "u2");
}

}  // namespace
}  // namespace railhead::device_plugin
