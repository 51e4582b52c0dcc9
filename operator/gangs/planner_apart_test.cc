// SPDX-License-Identifier: Apache-2.0
//
// Ports of nodes, and pods that keep apart from others: which nodes that excludes, and how many
// pods of a gang it lets share a node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "kube/json.h"
#include "operator/gangs/jobs_for_test.h"
#include "operator/gangs/planner.h"
#include "operator/gangs/testing/small_cluster.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SmallCluster;
using State = Decision::State;

TEST(Planner, PortsThatOthersHaveOnANodeKeepAGangAwayFromIt) {
  const Json ports = {{{"containerPort", 80}, {"hostPort", 80}}};
  SmallCluster cluster = TwoSpines();
  cluster.AddPod({.name = "other", .hcas = 0});
  cluster.pods["other"]["spec"]["nodeName"] = "n01";
  cluster.pods["other"]["spec"]["containers"][0]["ports"] = ports;
  AddJob(cluster, "job", 4);
  for (auto& [name, pod] : cluster.pods) pod["spec"]["containers"][0]["ports"] = ports;
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("n04", "n05", "n06", "n07"));
  // Another port, or another protocol, is not that one.
  cluster.pods["other"]["spec"]["containers"][0]["ports"][0]["protocol"] = "UDP";
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("n00", "n01", "n02", "n03"));
}

TEST(Planner, PortsOfAGangThatIsPlacedInTheSameRoundCountToo) {
  const Json ports = {{{"containerPort", 80}, {"hostPort", 80}}};
  SmallCluster cluster;
  for (const char* name : {"a", "b", "c"}) cluster.AddNode(name, "s", "l");
  AddJob(cluster, "first", 2, {.hcas = 1, .second = 1});
  AddJob(cluster, "second", 2, {.hcas = 1, .second = 2});
  for (auto& [name, pod] : cluster.pods) pod["spec"]["containers"][0]["ports"] = ports;
  const std::vector<Decision> decisions = cluster.Decide();
  EXPECT_EQ(decisions[0].state, State::kPlaced);
  EXPECT_EQ(decisions[1].state, State::kWaiting);
  EXPECT_THAT(decisions[1].message, HasSubstr("host port 80 in use"));
}

TEST(Planner, PodsThatWantNoneOfTheGangBesideThemAreLeftAlone) {
  const auto apart = [](const char* key) {
    return Json::parse(absl::StrCat(R"({"podAntiAffinity": {
      "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ")",
                                    key, R"(",
        "labelSelector": {"matchExpressions": [{"key": "railhead.io/gang", "operator": "Exists"}]}
      }]}})"));
  };
  SmallCluster cluster = TwoSpines();
  cluster.AddPod({.name = "other", .hcas = 0});
  cluster.pods["other"]["spec"]["nodeName"] = "n01";
  cluster.pods["other"]["spec"]["affinity"] = apart("kubernetes.io/hostname");
  AddJob(cluster, "job", 3, {.require_level = "leaf"});
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("n00", "n02", "n03"));
  cluster.pods["other"]["spec"]["affinity"] = apart("topology.railhead.io/spine");
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("n08", "n09", "n10"));
  // Those of another namespace are not meant, if none is named.
  cluster.pods["other"]["metadata"]["namespace"] = "elsewhere";
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("n00", "n01", "n02"));
}

TEST(Planner, AGangThatKeepsApartFromOthersLikeItKeepsApartFromThoseToo) {
  const Json apart = Json::parse(R"({"podAntiAffinity": {
    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
      "labelSelector": {"matchExpressions": [{"key": "railhead.io/gang", "operator": "Exists"}]}
    }]}})");
  SmallCluster cluster = TwoSpines();
  cluster.AddPod({.name = "other", .gang = "x", .size = 1, .hcas = 1});
  cluster.pods["other"]["spec"]["schedulingGates"].clear();
  cluster.pods["other"]["spec"]["nodeName"] = "n01";
  AddJob(cluster, "job", 16, {.hcas = 1});
  for (int i = 0; i < 16; ++i) cluster.pods[absl::StrCat("job-", i)]["spec"]["affinity"] = apart;
  const std::vector<Decision> decisions = cluster.Decide();
  const Decision& job = decisions[decisions[0].gang.name == "job" ? 0 : 1];
  EXPECT_EQ(job.state, State::kWaiting);
  EXPECT_THAT(job.message, HasSubstr("podAntiAffinity to a pod there"));
}

TEST(Planner, OnePodANodeWhereTheyHavePortsOfItOrKeepApart) {
  const Json ports = {{{"containerPort", 80}, {"hostPort", 80}}};
  const Json affinity = Json::parse(R"({"podAntiAffinity": {
    "requiredDuringSchedulingIgnoredDuringExecution": [{
      "topologyKey": "kubernetes.io/hostname",
      "labelSelector": {"matchExpressions": [{"key": "railhead.io/gang", "operator": "Exists"}]}
    }]}})");
  for (const bool by_ports : {true, false}) {
    SmallCluster cluster;
    for (const char* name : {"a", "b", "c"}) cluster.AddNode(name, "s", "l");
    const auto cordon = [&](bool cordoned) {
      for (const char* name : {"b", "c"}) cluster.nodes[name]["spec"]["unschedulable"] = cordoned;
    };
    AddJob(cluster, "job", 2, {.hcas = 1});
    cordon(true);
    EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("a", "a"));
    for (auto& [name, pod] : cluster.pods) {
      if (by_ports) {
        pod["spec"]["containers"][0]["ports"] = ports;
      } else {
        pod["spec"]["affinity"] = affinity;
      }
    }
    EXPECT_EQ(cluster.Decide()[0].state, State::kWaiting);
    cordon(false);
    EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("a", "b"));
    const Decision begun = cluster.Decide()[0];
    ASSERT_TRUE(cluster.Release(begun.assignments[0], begun.placement));
    EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("b"));
  }
}

}  // namespace
}  // namespace railhead::op::gangs
