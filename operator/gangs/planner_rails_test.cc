// SPDX-License-Identifier: Apache-2.0
//
// Rails of nodes: dead ones, shared HCAs, and gangs whose pods get the same rails on every node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kube/json.h"
#include "operator/gangs/jobs_for_test.h"
#include "operator/gangs/planner.h"
#include "operator/gangs/testing/small_cluster.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::SmallCluster;
using State = Decision::State;

TEST(Planner, HcasThatAreSharedAreNotCountedAsRails) {
  SmallCluster cluster;
  cluster.AddNode("a", "s", "l");
  cluster.nodes["a"]["status"]["allocatable"]["rdma/hca"] = "1k";
  cluster.nodes["a"]["metadata"]["annotations"]["railhead.io/node-facts"] =
      R"({"version": 1, "rails": [{"rail": 0, "device": "mlx5_0", "usable": true}]})";
  AddJob(cluster, "job", 8, {.hcas = 1});
  EXPECT_EQ(cluster.Decide()[0].state, State::kPlaced);
}

TEST(Planner, DeadRailsOfTheAgentsFactsCount) {
  SmallCluster cluster;
  cluster.AddNode("a", "s", "l");
  cluster.nodes["a"]["status"]["allocatable"]["rdma/hca"] = "2";
  cluster.nodes["a"]["metadata"]["annotations"]["railhead.io/node-facts"] =
      R"({"version": 1, "rails": [
        {"rail": 0, "device": "mlx5_0", "usable": true},
        {"rail": 1, "device": "mlx5_1", "usable": false, "reason": "port down"}]})";
  AddJob(cluster, "job", 1, {.hcas = 2});
  EXPECT_THAT(cluster.Decide()[0].message, HasSubstr("dead rails"));
  cluster.pods.clear();
  AddJob(cluster, "job", 1, {.hcas = 1});
  EXPECT_EQ(cluster.Decide()[0].state, State::kPlaced);
}

// Two nodes, of which one has a pod with one HCA, and a gang of two pods of a part of a node each.
SmallCluster SharedNode() {
  SmallCluster cluster;
  for (const char* node : {"a", "b"}) cluster.AddNode(node, "s", "l");
  cluster.AddPod({.name = "other", .hcas = 1});
  cluster.pods["other"]["spec"]["nodeName"] = "a";
  AddJob(cluster, "job", 2, {.hcas = 6});
  return cluster;
}

void TellRailsInUse(SmallCluster& cluster, const std::string& node, const std::string& rails) {
  cluster.nodes[node]["metadata"]["annotations"]["railhead.io/rails-in-use"] = rails;
}

TEST(Planner, PodsThatAreGivenOtherRailsAreTold) {
  SmallCluster cluster = SharedNode();
  const char kTold[] = "; 1 pod is given other rails than the rest";
  // The other one has the lowest rail, as the agent gives those first.
  EXPECT_THAT(cluster.Decide()[0].message, HasSubstr(kTold));
  TellRailsInUse(cluster, "a", "7");
  EXPECT_THAT(cluster.Decide()[0].message, Not(HasSubstr("other rails")));
  TellRailsInUse(cluster, "a", "3");
  EXPECT_THAT(cluster.Decide()[0].message, HasSubstr(kTold));
  // More than pods hold: one has ended since, and nobody knows which.
  TellRailsInUse(cluster, "a", "6,7");
  EXPECT_THAT(cluster.Decide()[0].message, HasSubstr(kTold));
  TellRailsInUse(cluster, "a", "many");
  EXPECT_THAT(cluster.Decide()[0].message, HasSubstr(kTold));
  cluster.pods.erase("other");
  EXPECT_THAT(cluster.Decide()[0].message, Not(HasSubstr("other rails")));
}

TEST(Planner, AGangThatWantsTheSameRailsWaitsForThem) {
  SmallCluster cluster = SharedNode();
  Annotate(cluster, "job", kSameRails, "true");
  Decision decision = cluster.Decide()[0];
  EXPECT_EQ(decision.state, State::kWaiting);
  EXPECT_THAT(decision.message,
              AllOf(HasSubstr("has room for 1 of 2 pods on nodes that give the same rails"),
                    HasSubstr("fits if 1 node of fabric cluster is free: a (drain: "),
                    HasSubstr("fits if pods may get different rails")));
  TellRailsInUse(cluster, "a", "7");
  decision = cluster.Decide()[0];
  EXPECT_EQ(decision.state, State::kPlaced);
  cluster.ReleaseAll({decision});
  EXPECT_EQ(cluster.Bind(), 0);

  // A pod that replaces a lost one gets the rails of the pods that are still there.
  cluster.nodes.erase("a");
  cluster.pods.erase("job-0");
  cluster.pods.erase("other");
  cluster.AddNode("c", "s", "l");
  cluster.AddPod(
      {.name = "job-0", .gang = "true", .size = 2, .owner = "job", .index = 0, .hcas = 6});
  Annotate(cluster, "job", kSameRails, "true");
  cluster.AddPod({.name = "third", .hcas = 2});
  cluster.pods["third"]["spec"]["nodeName"] = "c";
  EXPECT_EQ(cluster.Decide()[0].state, State::kWaiting);
  TellRailsInUse(cluster, "c", "6,7");
  EXPECT_EQ(cluster.Decide()[0].state, State::kPlaced);
}

// Four nodes of one leaf.
SmallCluster OneLeaf() {
  SmallCluster cluster;
  for (const char* node : {"a", "b", "c", "d"}) cluster.AddNode(node, "s", "l");
  return cluster;
}

TEST(Planner, PodsOfAPartOfANodeGetTheSameRailsOnANodeEach) {
  SmallCluster cluster = OneLeaf();
  AddJob(cluster, "job", 4, {.hcas = 4});
  Decision decision = cluster.Decide()[0];
  EXPECT_THAT(NodesOf(decision), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(decision.message, Not(HasSubstr("other rails")));
  Annotate(cluster, "job", kSameRails, "true");
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("a", "b", "c", "d"));

  cluster.nodes["d"]["spec"]["unschedulable"] = true;
  decision = cluster.Decide()[0];
  EXPECT_EQ(decision.state, State::kWaiting);
  EXPECT_THAT(decision.message,
              AllOf(HasSubstr("has room for 3 of 4 pods on nodes that give the same rails"),
                    HasSubstr("fits if pods may get different rails")));
  Annotate(cluster, "job", kSameRails, "false");
  decision = cluster.Decide()[0];
  EXPECT_THAT(NodesOf(decision), ElementsAre("a", "a", "b", "b"));
  EXPECT_THAT(decision.message, HasSubstr("; 2 pods are given other rails than the rest"));
}

TEST(Planner, APodThatComesBackGetsTheSameRailsOnAnotherNodeThanTheRest) {
  SmallCluster cluster = OneLeaf();
  AddJob(cluster, "job", 3, {.hcas = 4});
  Annotate(cluster, "job", kSameRails, "true");
  cluster.ReleaseAll(cluster.Decide());
  EXPECT_EQ(cluster.Bind(), 0);
  cluster.nodes["c"]["spec"]["unschedulable"] = true;
  cluster.AddPod(
      {.name = "job-2", .gang = "true", .size = 3, .owner = "job", .index = 2, .hcas = 4});
  Annotate(cluster, "job", kSameRails, "true");
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("d"));
  cluster.nodes["d"]["spec"]["unschedulable"] = true;
  EXPECT_EQ(cluster.Decide()[0].state, State::kWaiting);
}

TEST(Planner, PodsThatShareHcasGetTheSameRailsOnOneNode) {
  SmallCluster cluster = OneLeaf();
  Json rails = Json::array();
  for (int i = 0; i < 8; ++i) {
    rails.push_back({{"rail", i}, {"device", absl::StrCat("mlx5_", i)}, {"usable", true}});
  }
  for (auto& [name, node] : cluster.nodes) {
    node["metadata"]["annotations"]["railhead.io/node-facts"] =
        kube::DumpJson({{"version", 1}, {"rails", rails}});
    node["status"]["allocatable"]["rdma/hca"] = "64";
  }
  AddJob(cluster, "job", 4, {.hcas = 4});
  Annotate(cluster, "job", kSameRails, "true");
  const Decision decision = cluster.Decide()[0];
  EXPECT_THAT(NodesOf(decision), ElementsAre("a", "a", "b", "b"));
  EXPECT_THAT(decision.message, Not(HasSubstr("other rails")));
}

TEST(Planner, NodesAreReservedForPodsThatGetTheSameRails) {
  SmallCluster cluster = TwoSpines();
  Fill(cluster, 10);
  AddJob(cluster, "large", 8, {.hcas = 4, .second = 1});
  Annotate(cluster, "large", kSameRails, "true");
  const Decision decision = cluster.Decide({}, {}, At(601, absl::Minutes(10)))[0];
  EXPECT_THAT(decision.message, AllOf(HasSubstr("has room for 6 of 8 pods"),
                                      HasSubstr("8 nodes are reserved for it")));
}

TEST(Planner, APodThatComesBackGetsTheRailsOfTheOthersBeforeThoseOfMost) {
  SmallCluster cluster = TwoSpines();
  Json rails = Json::array();
  for (int i = 0; i < 8; ++i) {
    rails.push_back({{"rail", i}, {"device", absl::StrCat("mlx5_", i)}, {"usable", i != 0}});
  }
  rails[0]["reason"] = "port down";
  cluster.nodes["n01"]["metadata"]["annotations"]["railhead.io/node-facts"] =
      kube::DumpJson({{"version", 1}, {"rails", rails}});
  cluster.nodes["n01"]["status"]["allocatable"]["rdma/hca"] = "7";
  cluster.nodes["n02"]["metadata"]["annotations"] = cluster.nodes["n01"]["metadata"]["annotations"];
  cluster.nodes["n02"]["status"]["allocatable"]["rdma/hca"] = "7";
  AddJob(cluster, "job", 2, {.hcas = 7});
  Json& there = cluster.pods["job-0"];
  there["spec"]["schedulingGates"].clear();
  there["spec"]["nodeName"] = "n00";
  there["metadata"]["annotations"][kRank] = "0";
  there["metadata"]["annotations"][kPlacement] = "p";
  // n01 and n02 come first, and are more; but they give rails 1 to 7, and n00 has given 0 to 6.
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("n03"));
  cluster.nodes["n03"]["spec"]["unschedulable"] = true;
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("n01"));
}

}  // namespace
}  // namespace railhead::op::gangs
