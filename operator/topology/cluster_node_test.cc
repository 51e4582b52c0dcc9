// SPDX-License-Identifier: Apache-2.0
#include "operator/topology/cluster_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "fabric/discovery/source.h"
#include "kube/json.h"

namespace railhead::topology {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Json Node() {
  const Json facts = Json::parse(R"({"version": 1, "gpus": [{}, {}, {}, {}], "rails": [
    {"rail": 0, "device": "mlx5_0", "usable": true, "reason": ""},
    {"rail": 1, "device": "mlx5_1", "usable": false, "reason": "port 1 is DOWN"}]})");
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata",
           {{"name", "n0"},
            {"uid", "uid-n0"},
            {"labels",
             {{"kubernetes.io/hostname", "n0"},
              {"topology.railhead.io/spine", "s0"},
              {"topology.railhead.io/leaf", "l0"},
              {"railhead.io/topology-leaf", "l00000"}}},
            {"annotations", {{"railhead.io/node-facts", facts.dump()}}}}},
          {"spec", Json::object()},
          {"status",
           {{"allocatable", {{"nvidia.com/gpu", "8"}, {"rdma/hca", "2"}, {"cpu", "4"}}},
            {"images", {"large"}}}}};
}

std::optional<ClusterNode> Read(const Json& node, bool gangs = false) {
  return ClusterNodeOf(op::ReadNode(node, {.gangs = gangs, .topology = true}));
}

TEST(ClusterNodeTest, KeepsWhatItTellsOfTheFabric) {
  Json node = Node();
  node["spec"]["unschedulable"] = true;
  const auto read = Read(node);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->seen.uid, "uid-n0");
  EXPECT_EQ(read->seen.unschedulable, "cordoned");
  EXPECT_THAT(read->published, ElementsAre(Pair("railhead.io/topology-leaf", "l00000")));
  // Neither heartbeats nor what only gangs look at are news.
  Json later = node;
  later["status"]["conditions"] = {
      {{"type", "Ready"}, {"status", "True"}, {"lastHeartbeatTime", "now"}}};
  later["metadata"]["annotations"]["railhead.io/rails-in-use"] = "1";
  later["spec"]["taints"] = {{{"key", "k"}, {"effect", "NoSchedule"}}};
  EXPECT_EQ(Read(later, true), read);
  later["status"]["conditions"][0]["status"] = "False";
  later["spec"].erase("unschedulable");
  EXPECT_EQ(Read(later)->seen.unschedulable, "not ready");
}

// The operator and `railhead topology` find the same fabric.
TEST(ClusterNodeTest, TellsWhatTheCommandLineReads) {
  const Json whole = Node();
  Json without_plugin = whole;
  without_plugin["status"]["allocatable"] = {{"cpu", "4"}};
  Json plugin_down = whole;
  plugin_down["status"]["allocatable"]["nvidia.com/gpu"] = "0";
  Json many = whole;
  many["status"]["allocatable"] = {
      {"nvidia.com/gpu", "2k"}, {"amd.com/gpu", "1"}, {"rdma/hca", "10k"}, {"rdma/other", "3"}};
  many["metadata"].erase("annotations");
  Json damaged = whole;
  damaged["metadata"]["annotations"]["railhead.io/node-facts"] = "{";
  for (const Json& node : {whole, without_plugin, plugin_down, many, damaged}) {
    auto expected = fabric::ReadSource(kube::DumpJson(node), "n0");
    ASSERT_TRUE(expected.ok()) << expected.status();
    expected->nodes.at(0).where = "n0";
    EXPECT_EQ(Read(node)->seen, expected->nodes.at(0)) << node;
    EXPECT_EQ(Read(node, true)->seen, expected->nodes.at(0)) << node;
  }
  EXPECT_EQ(Read(without_plugin)->seen.gpus, 4);
  EXPECT_EQ(Read(plugin_down)->seen.gpus, 0);
  EXPECT_EQ(Read(many)->seen.hcas, 10'003);
  EXPECT_THAT(Read(damaged)->seen.facts_fault, HasSubstr("n0"));
}

TEST(ClusterNodeTest, ANodeOutsideTheFabricIsNoneUnlessSomethingIsPublishedOnIt) {
  Json node = {{"metadata", {{"name", "control"}, {"labels", {{"a", "b"}}}}}};
  EXPECT_FALSE(Read(node).has_value());
  node["metadata"]["labels"]["railhead.io/topology-node"] = "control";
  EXPECT_TRUE(Read(node).has_value());
}

}  // namespace
}  // namespace railhead::topology
