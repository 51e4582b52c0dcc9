// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/rail_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::fabric {
namespace {

using ::testing::IsEmpty;

TEST(RailNames, ANameSaysItsRail) {
  EXPECT_EQ(RailByName("rdma_rail%rail_id%", "rdma_rail3"), 3);
  EXPECT_EQ(RailByName("rdma_rail%rail_id%", "rdma_rail0"), 0);
  EXPECT_EQ(RailByName("r%rail_id%_p%plane_id%", "r12_p1"), 12);
  EXPECT_EQ(RailByName("n%nic_id%-%rail_id%x", "n7-1x"), 1);
  EXPECT_EQ(RailByName("%rail_id%a%rail_id%", "4a4"), 4);
}

TEST(RailNames, OtherNamesSayNothing) {
  for (const auto& [pattern, device] : {std::pair{"rdma_rail%rail_id%", "mlx5_0"},
                                        {"rdma_rail%rail_id%", "rdma_rail"},
                                        {"rdma_rail%rail_id%", "rdma_rail3p"},
                                        {"rdma_rail%rail_id%", "rdma_rail03"},
                                        {"rdma_rail%rail_id%", "rdma_rail99999999999"},
                                        {"rdma_rail%rail_id%", ""},
                                        {"rdma", "rdma"},
                                        {"n%nic_id%", "n3"},
                                        {"", ""},
                                        {"%rail_id%a%rail_id%", "4a5"},
                                        // Which digits are the rail?
                                        {"r%nic_id%%rail_id%", "r12"},
                                        {"r%rail_id%5", "r35"},
                                        {"r%rail_id%%", "r3"}}) {
    EXPECT_EQ(RailByName(pattern, device), std::nullopt) << pattern << " " << device;
  }
}

// Nodes whose devices are called by these rails, in the order of what their agents tell.
SeenNode Node(const std::string& name, const std::vector<int>& called) {
  SeenNode node;
  node.name = name;
  std::vector<SeenRail> rails;
  for (const int rail : called) {
    SeenRail seen;
    seen.rail = static_cast<int>(rails.size());
    seen.device = absl::StrCat("r", rail);
    rails.push_back(seen);
  }
  node.rails = std::move(rails);
  return node;
}

TEST(RailNames, WhereAgentsDoNotAgreeIsTold) {
  Observations seen;
  seen.rail_names = {{"t", "r%rail_id%", 1, "k.json:3"}};
  seen.nodes = {Node("n0", {0, 1}), Node("n1", {1, 0}), Node("n2", {})};
  seen.nodes.emplace_back().name = "silent";
  std::vector<Finding> findings;
  CompareRailNames(seen, findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].object, "n1");
  EXPECT_EQ(findings[0].severity, Severity::kFail);
  EXPECT_EQ(
      FindingLine(findings[0]),
      "n1: rails differ from NicInterfaceNameTemplate t (k.json:3): r1 of n1 "
      "is rail 1 by its name, but rail 0 according to its node agent; agents take precedence; "
      "correct the template's railPciAddresses, or `rails` in the node agents' configuration");
  seen.nodes.push_back(Node("n3", {2}));
  findings.clear();
  CompareRailNames(seen, findings);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].object, "n1, n3");
  findings.clear();
  seen.rail_names[0].devices = 2;
  CompareRailNames(seen, findings);
  EXPECT_THAT(findings, IsEmpty());
}

}  // namespace
}  // namespace railhead::fabric
