// SPDX-License-Identifier: Apache-2.0
#include "operator/topology/cluster_fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fabric/discovery/finding.h"
#include "kube/json.h"
#include "operator/topology/cluster_node.h"
#include "operator/topology/stored_topology.h"

namespace railhead::topology {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json Facts(int rails, int dead) {
  Json list = Json::array();
  for (int rail = 0; rail < rails; ++rail) {
    list.push_back({{"rail", rail},
                    {"device", absl::StrCat("mlx5_", rail)},
                    {"usable", rail != dead},
                    {"reason", ""}});
  }
  return {{"version", 1}, {"rails", list}, {"gpus", Json::array()}};
}

Json Node(const std::string& name, const std::string& leaf, int rails = 4, int dead = -1) {
  Json node = {{"apiVersion", "v1"},
               {"kind", "Node"},
               {"metadata",
                {{"name", name},
                 {"uid", "uid-" + name},
                 {"labels", {{"kubernetes.io/hostname", name}}},
                 {"annotations", {{"railhead.io/node-facts", Facts(rails, dead).dump()}}}}},
               {"status", {{"allocatable", {{"nvidia.com/gpu", "8"}}}, {"images", {"large"}}}}};
  if (!leaf.empty()) {
    node["metadata"]["labels"]["topology.railhead.io/spine"] = "s0";
    node["metadata"]["labels"]["topology.railhead.io/leaf"] = leaf;
  }
  return node;
}

NodeValue Value(const Json& node) {
  std::optional<ClusterNode> read = ReadClusterNode(node);
  EXPECT_TRUE(read.has_value());
  return std::make_shared<const ClusterNode>(*std::move(read));
}

absl::StatusOr<ClusterFabric> Find(const std::vector<NodeValue>& nodes,
                                   const std::optional<fabric::FabricModel>& given) {
  std::vector<const fabric::SeenNode*> seen;
  seen.reserve(nodes.size());
  for (const NodeValue& node : nodes) seen.push_back(&node->seen);
  return FindFabric(seen, given);
}

std::optional<fabric::FabricModel> Model(const std::string& leaf0, const std::string& leaf1) {
  const auto nodes = [](const std::string& name) {
    return Json::array({{{"name", name}, {"gpus", 4}, {"hcas", 2}, {"deadRails", {0}}}});
  };
  const Json object = {{"metadata", {{"name", "cluster"}}},
                       {"spec",
                        {{"model",
                          {{"topology", "rail-optimized"},
                           {"levels", {"leaf"}},
                           {"rails", 4},
                           {"domains",
                            {{{"name", "a"}, {"nodes", nodes(leaf0)}},
                             {{"name", "b"}, {"nodes", nodes(leaf1)}}}}}}}}};
  std::optional<StoredTopology> stored = ReadStoredTopology(object);
  EXPECT_EQ(stored->refusal, "");
  return stored->given;
}

TEST(ClusterNode, KeepsWhatItTellsOfTheFabric) {
  Json node = Node("n0", "l0");
  node["metadata"]["labels"]["railhead.io/topology-leaf"] = "l00000";
  node["spec"]["unschedulable"] = true;
  const NodeValue read = Value(node);
  EXPECT_EQ(read->seen.uid, "uid-n0");
  EXPECT_EQ(read->seen.gpus, 8);
  EXPECT_EQ(read->seen.rails->size(), 4);
  EXPECT_EQ(read->seen.unschedulable, "cordoned");
  ASSERT_EQ(read->seen.places.size(), 1);
  EXPECT_THAT(read->published, ElementsAre(std::pair("railhead.io/topology-leaf", "l00000")));
  // Heartbeats are no news.
  Json later = node;
  later["status"]["conditions"] = {
      {{"type", "Ready"}, {"status", "True"}, {"lastHeartbeatTime", "now"}}};
  EXPECT_EQ(*Value(later), *read);
}

TEST(ClusterNode, ANodeOutsideTheFabricIsNoneUnlessSomethingIsPublishedOnIt) {
  Json node = {{"metadata", {{"name", "control"}, {"labels", {{"a", "b"}}}}}};
  EXPECT_FALSE(ReadClusterNode(node).has_value());
  node["metadata"]["labels"]["railhead.io/topology-node"] = "control";
  EXPECT_TRUE(ReadClusterNode(node).has_value());
}

TEST(ClusterNode, WhatCannotBeReadIsToldAndHidesNoOther) {
  Json node = Node("n0", "l0");
  node["status"]["allocatable"]["rdma/hca"] = "many";
  EXPECT_THAT(Value(node)->seen.facts_fault, HasSubstr("rdma/hca"));
  const auto fabric = Find({Value(node), Value(Node("n1", "l0"))}, std::nullopt);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_EQ(fabric->found.model.nodes.size(), 1);
  ASSERT_FALSE(fabric->found.findings.empty());
  EXPECT_THAT(fabric->found.findings[0].message, HasSubstr("n0"));
}

TEST(FindFabric, LabelsSayWhereNodesAreAndAgentsWhatTheyHave) {
  const auto fabric =
      Find({Value(Node("n0", "l0")), Value(Node("n1", "l1", 4, 2)), Value(Node("n2", ""))},
           std::nullopt);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_FALSE(fabric->given);
  EXPECT_THAT(fabric->found.model.levels, ElementsAre("spine", "leaf"));
  ASSERT_EQ(fabric->found.model.nodes.size(), 2);
  EXPECT_THAT(fabric->found.model.nodes[1].dead_rails, ElementsAre(2));
  ASSERT_EQ(fabric->found.findings.size(), 1);
  EXPECT_THAT(fabric->found.findings[0].message, HasSubstr("n2: no cable and no label"));
}

TEST(FindFabric, WithoutAnyLabelItSaysWhatToGive) {
  const auto fabric = Find({Value(Node("n0", ""))}, std::nullopt);
  EXPECT_TRUE(absl::IsFailedPrecondition(fabric.status()));
  EXPECT_THAT(fabric.status().message(), HasSubstr("write spec.model"));
}

TEST(FindFabric, WhatPeopleGiveCountsAndNodesTellOfThemselves) {
  auto fabric = Find({Value(Node("n0", "l0", 4, 1)), Value(Node("n1", "l0"))}, Model("n0", "n1"));
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_TRUE(fabric->given);
  const fabric::FabricModel& model = fabric->found.model;
  EXPECT_EQ(model.name, "cluster");
  EXPECT_THAT(model.levels, ElementsAre("leaf"));
  ASSERT_EQ(model.nodes.size(), 2);
  EXPECT_EQ(model.nodes[0].gpus, 8);
  EXPECT_EQ(model.nodes[0].hcas, 4);
  EXPECT_THAT(model.nodes[0].dead_rails, ElementsAre(1));
  EXPECT_THAT(model.nodes[1].dead_rails, IsEmpty());
  EXPECT_THAT(fabric->found.findings, IsEmpty());

  // One that is not in the model, one that is not in the cluster, and more rails than it says.
  fabric = Find({Value(Node("n0", "", 5)), Value(Node("n2", ""))}, Model("n0", "n1"));
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_EQ(fabric->found.model.nodes.size(), 1);
  EXPECT_EQ(fabric->found.model.nodes[0].hcas, 4);
  EXPECT_EQ(fabric->found.model.domains[0][1].count, 0);
  std::vector<std::string> messages;
  for (const fabric::Finding& finding : fabric->found.findings) messages.push_back(finding.message);
  EXPECT_THAT(messages, ElementsAre(HasSubstr("n0: more rails than spec.model.rails"),
                                    HasSubstr("n2: not in spec.model"),
                                    HasSubstr("n1: in spec.model, but the cluster has no")));

  const auto none = Find({Value(Node("n5", ""))}, Model("n0", "n1"));
  EXPECT_TRUE(absl::IsFailedPrecondition(none.status()));
}

TEST(StoredTopology, SaysWhatIsWrongWithAModel) {
  const auto refusal = [](const Json& model) {
    return ReadStoredTopology({{"metadata", {{"name", "cluster"}, {"generation", 3}}},
                               {"spec", {{"model", model}}}})
        ->refusal;
  };
  EXPECT_THAT(refusal({{"topology", "fat-tree"}, {"levels", {"leaf"}}, {"rails", 1}}),
              HasSubstr("spec.domains"));
  EXPECT_THAT(refusal(3), HasSubstr("spec"));
  const auto empty = ReadStoredTopology({{"metadata", {{"name", "cluster"}, {"generation", 3}}}});
  EXPECT_EQ(empty->generation, 3);
  EXPECT_FALSE(empty->given.has_value());
  EXPECT_EQ(empty->refusal, "");
  EXPECT_FALSE(ReadStoredTopology({{"metadata", {{"name", "other"}}}}).has_value());
}

}  // namespace
}  // namespace railhead::topology
