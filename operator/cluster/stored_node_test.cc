// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster/stored_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kube/json.h"
#include "kube/yaml.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

Json Node() {
  return kube::ParseYaml(R"(
metadata:
  name: n0
  uid: uid-n0
  labels:
    kubernetes.io/hostname: host-0
    example.com/pool: large
    railhead.io/rails: "2"
    topology.railhead.io/spine: s0
    topology.railhead.io/leaf: l0
  annotations:
    railhead.io/rails-in-use: "1"
    railhead.io/node-facts: '{"version": 1, "gpus": ["a", "b"], "rails": [
      {"rail": 0, "device": "mlx5_0", "usable": true, "reason": ""},
      {"rail": 1, "device": "mlx5_1", "usable": false, "reason": "port 1 is DOWN"}]}'
spec:
  unschedulable: true
  taints: [{key: gpu, effect: NoSchedule}]
status:
  allocatable: {cpu: "96", rdma/hca: "1", nvidia.com/gpu: "2"}
  capacity: {cpu: "96", rdma/hca: "2", nvidia.com/gpu: "2"}
  conditions: [{type: Ready, status: "False"}]
)")
      ->at(0);
}

TEST(StoredNodeTest, ForGangsItIsKeptWhole) {
  const StoredNode node = ReadNode(Node(), {.gangs = true});
  EXPECT_EQ(node.name, "n0");
  EXPECT_EQ(node.uid, "uid-n0");
  EXPECT_EQ(node.hostname, "host-0");
  EXPECT_EQ(node.labels.size(), 5);
  EXPECT_EQ(node.hcas, 1);
  EXPECT_TRUE(node.cordoned);
  EXPECT_FALSE(node.ready);
  EXPECT_THAT(node.taints, ElementsAre(gangs::Taint{"gpu", "", "NoSchedule"}));
  EXPECT_THAT(node.used_rails, ElementsAre(1));
  EXPECT_EQ(node.allocatable.at("cpu"), 96'000);
  ASSERT_EQ(node.facts.rails.size(), 2);
  EXPECT_EQ(node.facts.rails[1].reason, "port 1 is DOWN");
  EXPECT_THAT(node.facts.capacity, ElementsAre(Pair("rdma/hca", 2)));
  const fabric::SeenNode seen = SeenNodeOf(node);
  EXPECT_EQ(seen.gpus, 2);
  EXPECT_EQ(seen.hcas, 1);
  EXPECT_EQ(seen.rails, node.facts.rails);
  ASSERT_EQ(seen.places.size(), 1);
  EXPECT_THAT(seen.places[0].levels, ElementsAre(Pair("spine", "s0"), Pair("leaf", "l0")));
}

// Labels of nodes can be most of what a replica has in memory.
TEST(StoredNodeTest, WhatNobodyLooksAtIsNotKept) {
  const StoredNode topology = ReadNode(Node(), {.topology = true});
  EXPECT_THAT(topology.labels, ElementsAre(Pair("railhead.io/rails", "2")));
  EXPECT_THAT(topology.allocatable, ElementsAre(Pair("nvidia.com/gpu", 2000)));
  EXPECT_EQ(topology.hcas, 1);
  EXPECT_EQ(topology.places.size(), 1);
  EXPECT_TRUE(topology.cordoned);
  EXPECT_THAT(topology.taints, IsEmpty());
  EXPECT_THAT(topology.used_rails, IsEmpty());

  const StoredNode verdict = ReadNode(Node(), {});
  EXPECT_EQ(verdict.facts, topology.facts);
  EXPECT_THAT(verdict.labels, ElementsAre(Pair("railhead.io/rails", "2")));
  EXPECT_THAT(verdict.allocatable, IsEmpty());
  EXPECT_THAT(verdict.places, IsEmpty());
  EXPECT_FALSE(verdict.cordoned);

  Json other = Node();
  other["metadata"].erase("annotations");
  other["status"]["allocatable"] = {{"cpu", "96"}};
  const StoredNode outside = ReadNode(other, {.gangs = true, .topology = true});
  EXPECT_FALSE(HasRdma(outside));
  EXPECT_THAT(outside.labels, ElementsAre(Pair("railhead.io/rails", "2")));
  EXPECT_THAT(outside.allocatable, IsEmpty());
  EXPECT_THAT(outside.places, IsEmpty());
  EXPECT_THAT(outside.taints, IsEmpty());
}

TEST(StoredNodeTest, FactsThatCannotBeReadAreToldAndMakeItAFabricsNode) {
  Json node = Node();
  node["metadata"]["annotations"]["railhead.io/node-facts"] = R"({"version": 1, "rails": [7]})";
  node["status"]["allocatable"] = {{"cpu", "96"}};
  const StoredNode stored = ReadNode(node, {.gangs = true});
  EXPECT_TRUE(HasRdma(stored));
  const fabric::SeenNode seen = SeenNodeOf(stored);
  EXPECT_EQ(seen.rails, std::nullopt);
  EXPECT_THAT(seen.facts_fault, AllOf(HasSubstr("n0"), HasSubstr("rails[0]")));
}

TEST(StoredNodeTest, ManyHcasAreSharesAndSayNothingOfRails) {
  Json node = Node();
  node["status"]["allocatable"]["rdma/hca"] = "1k";
  const StoredNode stored = ReadNode(node, {.gangs = true});
  EXPECT_EQ(stored.hcas, 1000);
  EXPECT_EQ(SeenNodeOf(stored).hcas, 0);
}

TEST(StoredNodeTest, StrangeObjectsAreEmptyNodes) {
  for (const Json& strange : {Json(), Json(7), Json::parse(R"({"metadata": 7, "spec": []})"),
                              Json::parse(R"({"status": {"allocatable": [1]}})")}) {
    EXPECT_EQ(ReadNode(strange, {.gangs = true, .topology = true}), StoredNode()) << strange;
  }
}

}  // namespace
}  // namespace railhead::op
