// SPDX-License-Identifier: Apache-2.0
#include "placement/topology/cluster_fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/finding.h"
#include "fabric/discovery/source.h"
#include "kube/json.h"
#include "placement/topology/stored_topology.h"

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

fabric::SeenNode Seen(const Json& node) {
  const auto read = fabric::ReadSource(kube::DumpJson(node), "the test");
  EXPECT_TRUE(read.ok()) << read.status();
  return read->nodes.at(0);
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
  absl::StatusOr<std::optional<fabric::FabricModel>> model =
      JoinModel({ReadStoredTopology(object)->part});
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(FindFabric, LabelsSayWhereNodesAreAndAgentsWhatTheyHave) {
  const auto fabric = FindFabric(
      {Seen(Node("n0", "l0")), Seen(Node("n1", "l1", 4, 2)), Seen(Node("n2", ""))}, std::nullopt);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_FALSE(fabric->given);
  EXPECT_THAT(fabric->found.model.levels, ElementsAre("spine", "leaf"));
  ASSERT_EQ(fabric->found.model.nodes.size(), 2);
  EXPECT_THAT(fabric->found.model.nodes[1].dead_rails, ElementsAre(2));
  ASSERT_EQ(fabric->found.findings.size(), 1);
  EXPECT_THAT(FindingLine(fabric->found.findings[0]), HasSubstr("n2: neither a cable nor a label"));
}

TEST(FindFabric, WithoutAnyLabelItSaysWhatToGive) {
  const auto fabric = FindFabric({Seen(Node("n0", ""))}, std::nullopt);
  EXPECT_TRUE(absl::IsFailedPrecondition(fabric.status()));
  EXPECT_THAT(fabric.status().message(), HasSubstr("write spec.model"));
}

TEST(FindFabric, ANodeOfTheModelIsSchedulableAgainWhenTheClusterSaysSo) {
  std::optional<fabric::FabricModel> model = Model("n0", "n1");
  for (fabric::FabricNode& node : model->nodes) node.unschedulable = "cordoned";
  Json cordoned = Node("n1", "");
  cordoned["spec"] = {{"unschedulable", true}};
  const auto fabric = FindFabric({Seen(Node("n0", "")), Seen(cordoned)}, model);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_EQ(fabric->found.model.nodes[0].unschedulable, "");
  EXPECT_EQ(fabric->found.model.nodes[1].unschedulable, "cordoned");
}

TEST(FindFabric, WhatPeopleGiveCountsAndNodesTellOfThemselves) {
  auto fabric =
      FindFabric({Seen(Node("n0", "l0", 4, 1)), Seen(Node("n1", "l0"))}, Model("n0", "n1"));
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
  fabric = FindFabric({Seen(Node("n0", "", 5)), Seen(Node("n2", ""))}, Model("n0", "n1"));
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  EXPECT_EQ(fabric->found.model.nodes.size(), 1);
  EXPECT_EQ(fabric->found.model.nodes[0].hcas, 4);
  EXPECT_EQ(fabric->found.model.domains[0][1].count, 0);
  std::vector<std::string> messages;
  for (const Finding& finding : fabric->found.findings) messages.push_back(FindingLine(finding));
  EXPECT_THAT(messages, ElementsAre(HasSubstr("n0: more rails than spec.model.rails"),
                                    HasSubstr("n2: not in spec.model"),
                                    HasSubstr("n1: in spec.model, but the cluster has no")));

  const auto none = FindFabric({Seen(Node("n5", ""))}, Model("n0", "n1"));
  EXPECT_TRUE(absl::IsFailedPrecondition(none.status()));
}

TEST(StoredTopology, SaysWhatIsWrongWithAModel) {
  const auto refusal = [](const Json& model) {
    return std::string(
        JoinModel({ReadStoredTopology({{"metadata", {{"name", "cluster"}, {"generation", 3}}},
                                       {"spec", {{"model", model}}}})
                       ->part})
            .status()
            .message());
  };
  EXPECT_THAT(refusal({{"topology", "fat-tree"}, {"levels", {"leaf"}}, {"rails", 1}}),
              HasSubstr("spec.domains"));
  EXPECT_THAT(refusal(3), HasSubstr("spec"));
  const auto empty = ReadStoredTopology({{"metadata", {{"name", "cluster"}, {"generation", 3}}}});
  EXPECT_EQ(empty->generation, 3);
  EXPECT_EQ(*JoinModel({empty->part}), std::nullopt);
  EXPECT_FALSE(ReadStoredTopology({{"metadata", {{"name", "other"}}}}).has_value());
}

// A part of a fabric with two levels.
ModelPart Part(const std::string& name, const std::string& spine,
               const std::vector<std::string>& nodes, const Json& more = Json::object()) {
  Json leaf = {{"name", spine + "-leaf"}, {"nodes", Json::array()}};
  for (const std::string& node : nodes) {
    leaf["nodes"].push_back({{"name", node}, {"gpus", 8}, {"hcas", 8}});
  }
  Json model = {{"topology", "fat-tree"}, {"levels", {"spine", "leaf"}}, {"rails", 8}};
  model["domains"] = Json::array({{{"name", spine}, {"domains", Json::array({leaf})}}});
  model.update(more);
  return *ReadModelPart({{"metadata", {{"name", name}}}, {"spec", {{"model", model}}}});
}

TEST(JoinModel, ItsDomainsStandInTheOrderOfTheObjectsNames) {
  const auto model = JoinModel({Part("cluster-10", "s3", {"n3"}),
                                Part("cluster-a", "s4", {"n4"}),
                                Part("cluster-2", "s2", {"n2"}),
                                Part("cluster", "s1", {"n1"}),
                                {"cluster-3", ""}});
  ASSERT_TRUE(model.ok()) << model.status();
  std::string order;
  for (const auto& domain : (*model)->domains[0]) order += domain.name;
  for (const auto& node : (*model)->nodes) order += node.name;
  EXPECT_EQ(order, "s1s2s3s4n1n2n3n4");
}

TEST(JoinModel, GlobalLinksLeadFromPartToPart) {
  const Json dragonfly = {{"topology", "dragonfly"}};
  Json first = dragonfly;
  first["globalLinks"] = Json::array({{{"a", "s1"}, {"b", "s2"}, {"gbps", 400}}});
  const auto model =
      JoinModel({Part("cluster", "s1", {"n1"}, first), Part("cluster-2", "s2", {"n2"}, dragonfly)});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->global_links.size(), 1U);
}

TEST(JoinModel, SaysInWhichObjectWhatIsWrong) {
  const ModelPart first = Part("cluster", "s1", {"n1"});
  const auto fault = [&](const std::vector<ModelPart>& parts) {
    const auto model = JoinModel(parts);
    EXPECT_TRUE(absl::IsInvalidArgument(model.status()));
    return std::string(model.status().message());
  };
  EXPECT_THAT(fault({first, Part("cluster-2", "s2", {"n2"}, {{"rails", 4}})}),
              HasSubstr("FabricTopology cluster-2, spec.model.rails: must be the same"));
  EXPECT_THAT(fault({first, Part("cluster-2", "s2", {"n2"}, {{"linkGbps", {{"node", 400}}}})}),
              HasSubstr("FabricTopology cluster-2, spec.model.linkGbps"));
  EXPECT_THAT(fault({first, Part("cluster-2", "s2", {"n2"}, {{"domains", 3}})}),
              HasSubstr("FabricTopology cluster-2, spec.model.domains"));
  EXPECT_THAT(fault({first, Part("cluster-2", "s2", {""})}),
              HasSubstr("FabricTopology cluster-2, spec.model"));
  // Each is well alone.
  EXPECT_THAT(fault({first, Part("cluster-2", "s2", {"n1"})}), HasSubstr("n1"));
  EXPECT_THAT(fault({first, Part("cluster-2", "s1", {"n2"})}), HasSubstr("s1"));
  EXPECT_THAT(fault({Part("cluster-2", "s2", {"n2"})}),
              HasSubstr("FabricTopology cluster must have the first"));
}

TEST(JoinedModel, IsAnotherWhereAPartIs) {
  JoinedModel joined;
  EXPECT_EQ(*joined.Of({}), std::nullopt);
  EXPECT_EQ((*joined.Of({Part("cluster", "s1", {"n1"})}))->nodes[0].name, "n1");
  EXPECT_EQ((*joined.Of({Part("cluster", "s1", {"n2"})}))->nodes[0].name, "n2");
  EXPECT_FALSE(joined.Of({Part("cluster-2", "s1", {"n2"})}).ok());
}

}  // namespace
}  // namespace railhead::topology
