// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/node_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "fabric/gpu_direct.h"
#include "fabric/inventory.h"
#include "fabric/pci_path.h"

namespace railhead::device_plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

fabric::Hca Rail(int rail, const std::string& layer = "InfiniBand", double rate = 400) {
  fabric::Hca hca;
  hca.name = absl::StrCat("mlx5_", rail);
  hca.pci_address = absl::StrCat("0000:1", rail, ":00.0");
  hca.path = fabric::ParsePciPath(
      absl::StrCat("/sys/devices/pci0000:1", rail, "/0000:1", rail, ":01.0/", hca.pci_address));
  hca.numa_node = 0;
  hca.rail = rail;
  hca.ports = {{1, "ACTIVE", layer, rate}};
  return hca;
}

fabric::Gpu GpuBeside(int rail) {
  const std::string address = absl::StrCat("0000:1", rail, ":00.1");
  return {"10de", address, 0,
          fabric::ParsePciPath(
              absl::StrCat("/sys/devices/pci0000:1", rail, "/0000:1", rail, ":01.0/", address))};
}

TEST(DescribeNodeTest, NothingIsToldOfANodeWithoutRdma) {
  fabric::NodeInventory inventory;
  inventory.gpus = {GpuBeside(0)};
  inventory.hcas = {Rail(0)};
  inventory.hcas[0].offered = false;
  EXPECT_EQ(DescribeNode(inventory, {}), NodeFacts{});
}

TEST(DescribeNodeTest, LabelsSayWhatSelectorsAskFor) {
  fabric::NodeInventory inventory;
  inventory.hcas = {Rail(0), Rail(1)};
  inventory.gpus = {GpuBeside(0), GpuBeside(1)};
  HostFacts host;
  host.gpu_direct = fabric::GpuDirect{};
  host.gpu_direct->dmabuf = true;
  EXPECT_THAT(
      DescribeNode(inventory, host).labels,
      UnorderedElementsAre(
          Pair("railhead.io/rails", "2"), Pair("railhead.io/link-layer", "InfiniBand"),
          Pair("railhead.io/rate-gbps", "400"), Pair("railhead.io/gpus", "2"),
          Pair("railhead.io/gpudirect", "dmabuf"), Pair("railhead.io/memlock-bytes", "unlimited")));
}

TEST(DescribeNodeTest, UnequalRailsAreTold) {
  fabric::NodeInventory inventory;
  inventory.hcas = {Rail(0), Rail(1, "Ethernet", 100), Rail(2, "Ethernet", 10)};
  inventory.hcas[2].health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  HostFacts host;
  host.memlock_bytes = 8U << 20U;
  EXPECT_THAT(
      DescribeNode(inventory, host).labels,
      UnorderedElementsAre(Pair("railhead.io/rails", "3"), Pair("railhead.io/link-layer", "mixed"),
                           Pair("railhead.io/rate-gbps", "100"), Pair("railhead.io/gpus", "0"),
                           Pair("railhead.io/memlock-bytes", "8388608")));
}

TEST(DescribeNodeTest, RailsInUseAreToldWhereOthersAreFree) {
  fabric::NodeInventory inventory;
  inventory.hcas = {Rail(0), Rail(1), Rail(2)};
  const NodeFacts idle = DescribeNode(inventory, {});
  EXPECT_EQ(idle.rails_in_use, "");
  NodeFacts some = DescribeNode(inventory, {.rails_in_use = {2, 0}});
  EXPECT_EQ(some.rails_in_use, "0,2");
  EXPECT_EQ(DescribeNode(inventory, {.rails_in_use = {0, 1, 2}}).rails_in_use, "");
  // One that nobody can have is not free.
  inventory.hcas[1].health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  EXPECT_EQ(DescribeNode(inventory, {.rails_in_use = {0, 2}}).rails_in_use, "");
  some.rails_in_use.clear();
  EXPECT_EQ(some, idle) << "and nothing else";
}

TEST(DescribeNodeTest, TheAnnotationIsWhatTheOperatorReads) {
  fabric::NodeInventory inventory;
  inventory.hcas = {Rail(0), Rail(1)};
  inventory.hcas[1].health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  inventory.hcas[0].address = fabric::AddressKind::kLinkLocal;
  inventory.hcas[0].pod_address = fabric::AddressKind::kRoutable;
  inventory.hcas[1].role = fabric::HcaRole::kBond;
  inventory.hcas[1].slaves = {"ens1f0", "ens1f1"};
  inventory.gpus = {GpuBeside(0)};
  HostFacts host;
  host.gpu_direct = fabric::GpuDirect{};
  host.gpu_direct->kernel = "6.8.0";
  host.gpu_direct->peermem = true;
  host.memlock_bytes = 65536;
  const auto facts = nlohmann::json::parse(DescribeNode(inventory, host).annotation);
  EXPECT_EQ(facts["version"], 1);
  EXPECT_EQ(facts["rails"][0]["device"], "mlx5_0");
  EXPECT_EQ(facts["rails"][0]["nearestGpus"], nlohmann::json({"0000:10:00.1"}));
  EXPECT_EQ(facts["rails"][0]["usable"], true);
  EXPECT_EQ(facts["rails"][1]["usable"], false);
  EXPECT_EQ(facts["rails"][0]["role"], "pf");
  EXPECT_EQ(facts["rails"][0]["address"], "linkLocal");
  EXPECT_EQ(facts["rails"][0]["podAddress"], "routable");
  EXPECT_EQ(facts["rails"][1]["role"], "bond");
  EXPECT_FALSE(facts["rails"][1].contains("address")) << "it has none to be seen";
  EXPECT_FALSE(facts["rails"][1].contains("podAddress"));
  EXPECT_EQ(facts["rails"][1]["reason"], "port 1 is DOWN");
  EXPECT_EQ(facts["rails"][1]["rateGbps"], 400);
  EXPECT_FALSE(facts["rails"][0].contains("slaves"));
  EXPECT_EQ(facts["rails"][1]["slaves"], nlohmann::json({"ens1f0", "ens1f1"}));
  EXPECT_EQ(facts["gpus"][0]["pciAddress"], "0000:10:00.1");
  EXPECT_EQ(facts["gpuDirect"]["way"], "peermem");
  EXPECT_EQ(facts["gpuDirect"]["iommu"], "unknown");
  EXPECT_EQ(facts["memlockBytes"], 65536);
}

TEST(DescribeNodeTest, WithoutALimitMemlockIsNull) {
  fabric::NodeInventory inventory;
  inventory.hcas = {Rail(0)};
  const auto facts = nlohmann::json::parse(DescribeNode(inventory, {}).annotation);
  EXPECT_TRUE(facts.contains("memlockBytes"));
  EXPECT_TRUE(facts["memlockBytes"].is_null());
  EXPECT_FALSE(facts.contains("gpuDirect")) << "no GPUs";
}

TEST(DescribeNodeTest, TheConditionNamesTheRailsThatAreDown) {
  fabric::NodeInventory inventory;
  for (int rail = 0; rail < 8; ++rail) inventory.hcas.push_back(Rail(rail));
  EXPECT_EQ(DescribeNode(inventory, {}).condition,
            (RailsCondition{true, "AllRailsUp", "all 8 rails carry data"}));
  inventory.hcas[3].health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  EXPECT_EQ(DescribeNode(inventory, {}).condition,
            (RailsCondition{false, "RailsDown",
                            "7 of 8 rails carry data; rail 3 (mlx5_3): port 1 is DOWN"}));
  inventory.hcas[3].health.Set(fabric::Stage::kFlapDamping, "its link flaps");
  EXPECT_EQ(DescribeNode(inventory, {}).condition->message,
            "7 of 8 rails carry data; rail 3 (mlx5_3): port 1 is DOWN; its link flaps");
  for (fabric::Hca& hca : inventory.hcas) {
    hca.health.Set(fabric::Stage::kRules, "port 1 is DOWN");
  }
  const RailsCondition all = *DescribeNode(inventory, {}).condition;
  EXPECT_THAT(all.message, HasSubstr("0 of 8 rails"));
  EXPECT_THAT(all.message, HasSubstr("and 4 more"));
}

}  // namespace
}  // namespace railhead::device_plugin
