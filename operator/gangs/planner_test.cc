// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "operator/gangs/names.h"
#include "operator/gangs/release_patch.h"
#include "operator/gangs/testing/small_cluster.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::PodSpec;
using testing::SmallCluster;
using State = Decision::State;

// Two spines of two leaves of four nodes each: node n5 is in spine s0 and leaf l1.
SmallCluster TwoSpines() {
  SmallCluster cluster;
  for (int i = 0; i < 16; ++i) {
    cluster.AddNode(absl::StrCat("n", i / 10, i % 10), absl::StrCat("s", i / 8),
                    absl::StrCat("l", i / 4));
  }
  return cluster;
}

void AddJob(SmallCluster& cluster, const std::string& name, int pods, PodSpec spec = {}) {
  for (int i = 0; i < pods; ++i) {
    spec.name = absl::StrCat(name, "-", i);
    spec.gang = "true";
    spec.owner = name;
    spec.size = pods;
    spec.index = i;
    cluster.AddPod(spec);
  }
}

std::vector<std::string> NodesOf(const Decision& decision) {
  std::vector<std::string> nodes;
  for (const Assignment& assignment : decision.assignments) nodes.push_back(assignment.node);
  return nodes;
}

TEST(Planner, PlacesTheWholeGangInOneLeafInTheOrderOfItsIndices) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 4);
  const std::vector<Decision> decisions = cluster.Decide();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].state, State::kPlaced);
  EXPECT_THAT(NodesOf(decisions[0]), ElementsAre("n00", "n01", "n02", "n03"));
  EXPECT_EQ(decisions[0].message, "4 pods on 4 nodes; domains used: spine 1, leaf 1");
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(decisions[0].assignments[static_cast<size_t>(i)].rank, i);
    EXPECT_EQ(decisions[0].assignments[static_cast<size_t>(i)].pod->name, absl::StrCat("job-", i));
  }
}

TEST(Planner, ElevenIndicesAreInTheOrderOfNumbersAndNotOfTexts) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 11);
  const std::vector<Decision> decisions = cluster.Decide();
  ASSERT_EQ(decisions[0].assignments.size(), 11U);
  EXPECT_EQ(decisions[0].assignments[2].pod->name, "job-2");
  EXPECT_EQ(decisions[0].assignments[10].pod->name, "job-10");
  EXPECT_EQ(decisions[0].assignments[10].rank, 10);
}

TEST(Planner, AGangThatIsNotAllThereWaitsAndSaysHowManyAreMissing) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 4);
  cluster.pods.erase("job-2");
  const std::vector<Decision> decisions = cluster.Decide();
  EXPECT_EQ(decisions[0].state, State::kIncomplete);
  EXPECT_THAT(decisions[0].message, HasSubstr("3 of 4 pods exist"));
  EXPECT_THAT(decisions[0].assignments, IsEmpty());
}

TEST(Planner, APodThatHasEndedWellCountsAsThere) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 4);
  cluster.pods["job-2"]["status"]["phase"] = "Succeeded";
  EXPECT_EQ(cluster.Decide()[0].state, State::kPlaced);
  cluster.pods["job-2"]["status"]["phase"] = "Failed";
  EXPECT_EQ(cluster.Decide()[0].state, State::kIncomplete);
}

TEST(Planner, WhatALeaderBeganIsFinishedFirstInTheSameLeafAndTheRanksStayThose) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "half", 4, {.second = 50});
  const Decision begun = cluster.Decide()[0];
  ASSERT_TRUE(cluster.Release(begun.assignments[1], begun.placement));
  ASSERT_TRUE(cluster.Release(begun.assignments[3], begun.placement));
  AddJob(cluster, "older", 3, {.priority = 100, .second = 1});
  const std::vector<Decision> decisions = cluster.Decide();
  ASSERT_EQ(decisions.size(), 2U);
  EXPECT_EQ(decisions[0].gang.name, "half");
  EXPECT_THAT(NodesOf(decisions[0]), ElementsAre("n00", "n02"));
  EXPECT_EQ(decisions[0].assignments[0].rank, 0);
  EXPECT_EQ(decisions[0].assignments[1].rank, 2);
  EXPECT_THAT(NodesOf(decisions[1]), ElementsAre("n04", "n05", "n06"));
}

TEST(Planner, APodThatComesBackGoesWhereTheOthersAre) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 3);
  cluster.ReleaseAll(cluster.Decide());
  ASSERT_EQ(cluster.Bind(), 0);
  cluster.nodes["n01"]["spec"]["unschedulable"] = true;
  cluster.AddPod({.name = "job-1", .gang = "true", .size = 3, .owner = "job", .index = 1});
  const std::vector<Decision> decisions = cluster.Decide();
  EXPECT_EQ(decisions[0].state, State::kPlaced);
  EXPECT_THAT(NodesOf(decisions[0]), ElementsAre("n03"));
  EXPECT_EQ(decisions[0].assignments[0].rank, 1);
}

TEST(Planner, WhatOthersTookOrWerePromisedIsNotGivenAgain) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "a", 4);
  const Decision first = cluster.Decide()[0];
  Promises promises;
  for (const Assignment& assignment : first.assignments) {
    promises[assignment.pod->uid] = {assignment.node, assignment.hostname, assignment.rank, "p"};
  }
  AddJob(cluster, "b", 4);
  const std::vector<Decision> second = cluster.Decide(promises);
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(second[0].state, State::kRunning);  // nothing of it is left to be placed
  EXPECT_THAT(NodesOf(second[1]), ElementsAre("n04", "n05", "n06", "n07"));
}

TEST(Planner, ThePriorityComesBeforeTheAge) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "old", 12, {.second = 1});
  AddJob(cluster, "important", 8, {.priority = 5, .second = 9});
  const std::vector<Decision> decisions = cluster.Decide();
  EXPECT_EQ(decisions[0].gang.name, "important");
  EXPECT_EQ(decisions[0].state, State::kPlaced);
  EXPECT_EQ(decisions[1].state, State::kWaiting);
}

TEST(Planner, AGangThatDoesNotFitSaysWhyAndWhatWouldHelp) {
  SmallCluster cluster = TwoSpines();
  cluster.nodes["n00"]["spec"]["unschedulable"] = true;
  cluster.nodes["n01"]["spec"]["taints"] = {{{"key", "broken"}, {"effect", "NoSchedule"}}};
  cluster.nodes["n02"]["status"]["conditions"][0]["status"] = "False";
  cluster.nodes["n03"]["status"]["allocatable"]["cpu"] = "500m";
  AddJob(cluster, "job", 16);
  const Decision decision = cluster.Decide()[0];
  EXPECT_EQ(decision.state, State::kWaiting);
  EXPECT_THAT(decision.message,
              AllOf(HasSubstr("has room for 12 of 16 pods"), HasSubstr("fits with 12 pods"),
                    HasSubstr("1 of 16 nodes excluded: unschedulable: cordoned"),
                    HasSubstr("unschedulable: taint broken:NoSchedule"),
                    HasSubstr("unschedulable: not ready"),
                    HasSubstr("unschedulable: less cpu than a pod requests")));
}

TEST(Planner, WhatPodsTolerateAndSelectCounts) {
  SmallCluster cluster = TwoSpines();
  for (auto& [name, node] : cluster.nodes) {
    node["spec"]["taints"] = {{{"key", "gpu"}, {"value", "yes"}, {"effect", "NoSchedule"}}};
  }
  AddJob(cluster, "job", 2);
  EXPECT_EQ(cluster.Decide()[0].state, State::kWaiting);
  for (auto& [name, pod] : cluster.pods) {
    pod["spec"]["tolerations"] = {{{"key", "gpu"}, {"operator", "Exists"}}};
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        Json::parse(R"({"nodeSelectorTerms": [{"matchExpressions": [
          {"key": "topology.railhead.io/leaf", "operator": "In", "values": ["l2"]}]}]})");
  }
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("n08", "n09"));
}

TEST(Planner, AllOfWhatAPodAsksForMustBeFree) {
  SmallCluster cluster;
  cluster.AddNode("a", "s", "l");
  AddJob(cluster, "job", 5, {.hcas = 1});
  for (auto& [name, pod] : cluster.pods) {
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "20";
  }
  // 96 cores for five times 20.
  EXPECT_THAT(cluster.Decide()[0].message, HasSubstr("room for 4 of 5 pods"));
  for (auto& [name, pod] : cluster.pods) {
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "19";
  }
  EXPECT_EQ(cluster.Decide()[0].state, State::kPlaced);
}

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

TEST(Planner, ARequiredLevelIsKeptAlsoByWhatComesBack) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "wide", 5, {.require_level = "leaf"});
  EXPECT_EQ(cluster.Decide()[0].state, State::kWaiting);
  EXPECT_THAT(cluster.Decide()[0].message, HasSubstr("fits with requireLevel: spine"));
  cluster.pods.clear();
  AddJob(cluster, "job", 4, {.require_level = "leaf"});
  cluster.ReleaseAll(cluster.Decide());
  cluster.Bind();
  cluster.nodes["n03"]["spec"]["unschedulable"] = true;
  cluster.AddPod({.name = "job-3",
                  .gang = "true",
                  .size = 4,
                  .owner = "job",
                  .index = 3,
                  .require_level = "leaf"});
  const Decision decision = cluster.Decide()[0];
  EXPECT_EQ(decision.state, State::kWaiting);
  EXPECT_THAT(decision.message, HasSubstr("not in the leaf of the gang"));
}

TEST(Planner, ALevelThatTheClusterDoesNotHaveIsNamed) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 2, {.require_level = "rack"});
  const Decision decision = cluster.Decide()[0];
  EXPECT_EQ(decision.state, State::kIncomplete);
  EXPECT_THAT(decision.message, HasSubstr("has no level \"rack\"; its levels are spine, leaf"));
}

TEST(Planner, NodesThatNoLabelPlacesComeLastAndMeetNoRequirement) {
  SmallCluster cluster;
  cluster.AddNode("lost1", "", "");
  cluster.AddNode("lost2", "", "");
  cluster.AddNode("n1", "s", "l1");
  cluster.AddNode("n2", "s", "l2");
  AddJob(cluster, "two", 2);
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("n1", "n2"));
  cluster.pods.clear();
  AddJob(cluster, "three", 3);
  EXPECT_EQ(cluster.Decide()[0].state, State::kPlaced);
  cluster.pods.clear();
  AddJob(cluster, "leaf", 2, {.require_level = "leaf"});
  EXPECT_EQ(cluster.Decide()[0].state, State::kWaiting);
}

TEST(Planner, WithoutAnyTopologyAllNodesAreOneDomain) {
  SmallCluster cluster;
  for (const char* name : {"a", "b", "c"}) cluster.AddNode(name, "", "");
  AddJob(cluster, "job", 3);
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("a", "b", "c"));
}

TEST(Planner, WhereTheSchedulerRefusedAPodIsNotTriedAgain) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 4);
  const std::string key = cluster.Decide()[0].gang.key;
  EXPECT_THAT(NodesOf(cluster.Decide({}, {{key, {"n02"}}})[0]),
              ElementsAre("n04", "n05", "n06", "n07"));
}

TEST(Planner, APodThatSlippedPastAdmissionDoesNotLetTheOthersGoOneByOne) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 4);
  cluster.pods["job-0"]["spec"]["schedulingGates"].clear();
  cluster.pods["job-0"]["spec"]["nodeName"] = "n00";
  cluster.pods.erase("job-2");
  cluster.pods.erase("job-3");
  const Decision decision = cluster.Decide()[0];
  EXPECT_EQ(decision.state, State::kIncomplete);
  EXPECT_THAT(decision.message, HasSubstr("2 of 4 pods exist"));
}

TEST(Planner, ALabelThatClaimsAGangOfPodsWithoutDevicesIsNoTrouble) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 2, {.hcas = 0});
  const Decision decision = cluster.Decide()[0];
  EXPECT_EQ(decision.state, State::kIncomplete);
  EXPECT_THAT(decision.message, HasSubstr("requests neither HCAs nor GPUs"));
}

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

TEST(Planner, EveryPodIsToldWhereRankZeroIs) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 3);
  const auto told = [&](const std::string& pod) {
    return cluster.pods[pod]["metadata"]["annotations"].value("railhead.io/master-addr", "");
  };
  for (auto& [name, pod] : cluster.pods) {
    pod["spec"]["hostname"] = name;
    pod["spec"]["subdomain"] = "ring";
  }
  Decision decision = cluster.Decide()[0];
  for (const Assignment& assignment : decision.assignments) {
    ASSERT_TRUE(cluster.Release(assignment, decision.placement));
  }
  for (const char* pod : {"job-0", "job-1", "job-2"}) EXPECT_EQ(told(pod), "job-0.ring");
  // One that comes back, whichever it was.
  for (const int rank : {2, 0}) {
    const std::string name = absl::StrCat("job-", rank);
    Json again = cluster.pods["job-1"];
    cluster.pods.erase(name);
    AddJob(cluster, "again", 3);
    Json back = cluster.pods[absl::StrCat("again-", rank)];
    for (int i = 0; i < 3; ++i) cluster.pods.erase(absl::StrCat("again-", i));
    back["metadata"]["name"] = name;
    back["metadata"]["ownerReferences"] = again["metadata"]["ownerReferences"];
    back["spec"]["hostname"] = name;
    back["spec"]["subdomain"] = "ring";
    cluster.pods[name] = back;
    decision = cluster.Decide()[0];
    ASSERT_EQ(decision.assignments.size(), 1u) << decision.message;
    EXPECT_EQ(decision.assignments[0].rank, rank);
    EXPECT_EQ(decision.assignments[0].master, "job-0.ring");
    ASSERT_TRUE(cluster.Release(decision.assignments[0], decision.placement));
  }
}

TEST(Planner, ThePatchAppliesOnceToThatPodAlone) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 1);
  cluster.pods["job-0"]["spec"]["schedulingGates"] = {{{"name", "other"}}, {{"name", kGate}}};
  EXPECT_THAT(cluster.Decide()[0].message, HasSubstr("other scheduling gates"));
  cluster.pods["job-0"]["spec"]["schedulingGates"] = {{{"name", kGate}}};
  cluster.pods["job-0"]["spec"]["nodeSelector"] = {{"topology.railhead.io/leaf", "l1"}};
  const Decision decision = cluster.Decide()[0];
  const Assignment& assignment = decision.assignments[0];
  ASSERT_TRUE(cluster.Release(assignment, decision.placement));
  const Json& pod = cluster.pods["job-0"];
  EXPECT_EQ(pod["spec"]["schedulingGates"], Json::array());
  EXPECT_EQ(pod["spec"]["nodeSelector"],
            Json({{"topology.railhead.io/leaf", "l1"}, {kHostname, "n04"}}));
  EXPECT_EQ(pod["metadata"]["annotations"][kRank], "0");
  EXPECT_EQ(pod["metadata"]["annotations"][kPlacement], decision.placement);
  EXPECT_FALSE(cluster.Release(assignment, decision.placement));  // it is released
  cluster.AddPod({.name = "job-0", .gang = "true", .size = 1, .owner = "job", .index = 0});
  EXPECT_FALSE(cluster.Release(assignment, decision.placement));  // it is another pod
}

DecideOptions At(int second, absl::Duration reserve_after = absl::InfiniteDuration()) {
  DecideOptions options;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, "2026-01-01T00:00:00Z", &options.now, nullptr));
  options.now += absl::Seconds(second);
  options.reserve_after = reserve_after;
  return options;
}

void Annotate(SmallCluster& cluster, const std::string& job, const char* name, const char* value) {
  for (auto& [pod, object] : cluster.pods) {
    if (pod.starts_with(job + "-")) object["metadata"]["annotations"][name] = value;
  }
}

// As a scheduler shows that nothing of the first `nodes` nodes is free.
void Fill(SmallCluster& cluster, int nodes) {
  for (int i = 0; i < nodes; ++i) {
    const std::string name = absl::StrCat("n", i / 10, i % 10);
    cluster.AddPod({.name = "on-" + name});
    cluster.pods["on-" + name]["spec"]["nodeName"] = name;
  }
}

TEST(Planner, AGangThatHasWaitedForLongIsNotOvertakenAnyMore) {
  SmallCluster cluster = TwoSpines();
  Fill(cluster, 10);
  AddJob(cluster, "large", 8, {.second = 1});
  AddJob(cluster, "small", 2, {.second = 2});
  const absl::Duration wait = absl::Minutes(10);
  EXPECT_THAT(NodesOf(cluster.Decide({}, {}, At(600, wait))[1]), ElementsAre("n10", "n11"));
  std::vector<Decision> decisions = cluster.Decide({}, {}, At(601, wait));
  EXPECT_THAT(decisions[0].message, HasSubstr("8 nodes are reserved for it"));
  EXPECT_EQ(decisions[1].state, State::kWaiting);
  EXPECT_THAT(decisions[1].message,
              HasSubstr("8 of 16 nodes excluded: unschedulable: reserved for large"));
  // What is not needed for it is given away: of ten nodes that will be free these are two.
  cluster.pods.erase("on-n00");
  cluster.pods.erase("on-n01");
  cluster.pods.erase("on-n02");
  decisions = cluster.Decide({}, {}, At(601, wait));
  EXPECT_EQ(decisions[0].state, State::kPlaced);
}

TEST(Planner, WhatIsKeptFreeIsForTheFirstAndNoHindranceToThoseBeforeItOrBegun) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "begun", 2, {.second = 3});
  cluster.ReleaseAll(cluster.Decide());
  ASSERT_EQ(cluster.Bind(), 0);
  cluster.AddPod({.name = "begun-1", .gang = "true", .size = 2, .owner = "begun", .index = 1});
  AddJob(cluster, "large", 16, {.second = 1});
  AddJob(cluster, "urgent", 2, {.priority = 1, .second = 5});
  AddJob(cluster, "later", 2, {.second = 2});
  const std::vector<Decision> decisions = cluster.Decide({}, {}, At(1800, absl::Minutes(10)));
  ASSERT_EQ(decisions.size(), 4U);
  EXPECT_THAT(NodesOf(decisions[0]), ElementsAre("n01"));
  EXPECT_EQ(decisions[1].gang.name, "urgent");
  EXPECT_EQ(decisions[1].state, State::kPlaced);
  EXPECT_EQ(decisions[2].gang.name, "large");
  EXPECT_EQ(decisions[2].state, State::kWaiting);
  EXPECT_EQ(decisions[3].state, State::kWaiting);
}

// A pod that asks for little and never ends, and a gang that needs its node, too.
SmallCluster WithAGangThatNeverFits() {
  SmallCluster cluster = TwoSpines();
  Fill(cluster, 1);
  AddJob(cluster, "large", 16, {.second = 1});
  return cluster;
}

TEST(Planner, WhatIsKeptFreeIsGivenBackAfterAWhile) {
  SmallCluster cluster = WithAGangThatNeverFits();
  AddJob(cluster, "small", 2, {.second = 2});
  const absl::Duration wait = absl::Minutes(10);
  const int turn = 600 * kReservations;
  int begin = 0;
  for (const bool kept : {true, false, true, false}) {
    for (const int second : {begin + 700, begin + turn - 1}) {
      EXPECT_EQ(cluster.Decide({}, {}, At(second, wait))[1].state,
                kept ? State::kWaiting : State::kPlaced)
          << second;
    }
    begin += turn;
  }
}

TEST(Planner, WithoutAWaitRoomIsKeptFreeAtOnce) {
  SmallCluster cluster = WithAGangThatNeverFits();
  AddJob(cluster, "small", 2, {.second = 1});
  const absl::Duration wait = absl::ZeroDuration();
  for (const int second : {1, 2, 599}) {
    const std::vector<Decision> decisions = cluster.Decide({}, {}, At(second, wait));
    EXPECT_THAT(decisions[0].message, HasSubstr("16 nodes are reserved for it"));
    EXPECT_THAT(decisions[0].message, Not(HasSubstr("it has waited")));
    EXPECT_EQ(decisions[1].state, State::kWaiting) << second;
  }
  EXPECT_EQ(cluster.Decide({}, {}, At(600, wait))[1].state, State::kPlaced);
}

TEST(Planner, ANamespaceWhoseGangIsIncompleteHasNoTurn) {
  SmallCluster cluster = WithAGangThatNeverFits();
  AddJob(cluster, "half", 2, {.second = 1});
  cluster.pods.erase("half-1");
  cluster.pods["half-0"]["metadata"]["namespace"] = "a";
  const std::vector<Decision> decisions = cluster.Decide({}, {}, At(700, absl::Minutes(10)));
  EXPECT_TRUE(std::any_of(decisions.begin(), decisions.end(), [](const Decision& decision) {
    return decision.gang.name == "large" && decision.reserves;
  }));
}

TEST(Planner, ANamespaceWhoseGangsCanNeverStartHasNoTurn) {
  const auto reserves = [](SmallCluster& cluster, const std::set<std::string>& put_off = {}) {
    for (auto& [name, pod] : cluster.pods) {
      if (name.starts_with("never-")) pod["metadata"]["namespace"] = "a";
    }
    DecideOptions options = At(700, absl::Minutes(10));
    options.put_off = put_off;
    std::vector<std::string> names;
    for (const Decision& decision : cluster.Decide({}, {}, options)) {
      if (decision.reserves) names.push_back(decision.gang.name);
    }
    return names;
  };
  SmallCluster larger_than_the_cluster = WithAGangThatNeverFits();
  AddJob(larger_than_the_cluster, "never", 100, {.second = 1});
  EXPECT_THAT(reserves(larger_than_the_cluster), ElementsAre("large"));

  SmallCluster larger_than_a_leaf = WithAGangThatNeverFits();
  AddJob(larger_than_a_leaf, "never", 5, {.require_level = "leaf", .second = 1});
  EXPECT_THAT(reserves(larger_than_a_leaf), ElementsAre("large"));

  SmallCluster more_than_nodes = WithAGangThatNeverFits();
  AddJob(more_than_nodes, "never", 17, {.hcas = 4, .second = 1});
  Annotate(more_than_nodes, "never", kSameRails, "true");
  EXPECT_THAT(reserves(more_than_nodes), ElementsAre("large"));

  SmallCluster unknown_level = WithAGangThatNeverFits();
  AddJob(unknown_level, "never", 16, {.require_level = "rack", .second = 1});
  EXPECT_THAT(reserves(unknown_level), ElementsAre("large"));

  SmallCluster chosen_by_others = WithAGangThatNeverFits();
  AddJob(chosen_by_others, "never", 2, {.second = 1});
  for (auto& [name, pod] : chosen_by_others.pods) {
    if (name.starts_with("never-")) pod["spec"]["nodeSelector"][kHostname] = "n00";
  }
  EXPECT_THAT(reserves(chosen_by_others), ElementsAre("large"));

  SmallCluster rejected = WithAGangThatNeverFits();
  AddJob(rejected, "never", 16, {.second = 1});
  EXPECT_THAT(reserves(rejected), ElementsAre("never"));
  for (const Decision& decision : rejected.Decide({}, {}, At(0))) {
    if (decision.gang.name != "never") continue;
    EXPECT_THAT(reserves(rejected, {decision.gang.key}), ElementsAre("large"));
  }
}

TEST(Planner, ANamespaceThatHasNothingIsNotKeptAwayByAnother) {
  SmallCluster cluster = WithAGangThatNeverFits();
  AddJob(cluster, "small", 2, {.second = 500});
  for (int i = 0; i < 2; ++i) {
    cluster.pods[absl::StrCat("small-", i)]["metadata"]["namespace"] = "other";
  }
  std::vector<Decision> decisions = cluster.Decide({}, {}, At(700, absl::Minutes(10)));
  EXPECT_THAT(decisions[0].message, HasSubstr("reserved for it"));
  ASSERT_EQ(decisions[1].state, State::kPlaced);
  cluster.ReleaseAll(decisions);
  ASSERT_EQ(cluster.Bind(), 0);
  AddJob(cluster, "more", 2, {.second = 501});
  for (int i = 0; i < 2; ++i) {
    cluster.pods[absl::StrCat("more-", i)]["metadata"]["namespace"] = "other";
  }
  decisions = cluster.Decide({}, {}, At(700, absl::Minutes(10)));
  EXPECT_EQ(decisions.back().gang.name, "more");
  EXPECT_EQ(decisions.back().state, State::kWaiting) << "it has had some";
}

TEST(Planner, NamespacesTakeTurnsHoweverManyGangsOneHas) {
  SmallCluster cluster = WithAGangThatNeverFits();
  AddJob(cluster, "larger", 16, {.second = 2});
  AddJob(cluster, "other", 16, {.second = 3});
  for (int i = 0; i < 16; ++i) {
    cluster.pods[absl::StrCat("other-", i)]["metadata"]["namespace"] = "other";
  }
  std::set<std::string> kept_for;
  for (int turn = 0; turn < 4; turn += 2) {
    const int begin = turn * 600 * kReservations;
    for (const Decision& decision : cluster.Decide({}, {}, At(begin + 700, absl::Minutes(10)))) {
      if (absl::StrContains(decision.message, "reserved for it")) {
        kept_for.insert(decision.gang.name);
      }
    }
  }
  EXPECT_THAT(kept_for, ElementsAre("large", "other"));
}

TEST(Planner, NothingIsKeptFreeForAGangThatCanNeverStart) {
  SmallCluster cluster = TwoSpines();
  cluster.nodes["n00"]["spec"]["unschedulable"] = true;
  // What asks for no device is taken to stay: one of each node's.
  cluster.AddPod({.name = "daemon"});
  cluster.pods["daemon"]["spec"]["nodeName"] = "n01";
  cluster.pods["daemon"]["spec"]["containers"][0]["resources"]["requests"] = {{"cpu", "96"}};
  AddJob(cluster, "large", 15, {.second = 1});
  AddJob(cluster, "small", 2, {.second = 2});
  EXPECT_EQ(cluster.Decide({}, {}, At(1800, absl::Minutes(10)))[1].state, State::kPlaced);
  cluster.pods.erase("daemon");
  EXPECT_EQ(cluster.Decide({}, {}, At(1800, absl::Minutes(10)))[0].state, State::kPlaced);
}

TEST(Planner, APreferredLevelIsWaitedForAsLongAsThePodsSay) {
  SmallCluster cluster = TwoSpines();
  Fill(cluster, 2);
  for (const char* full : {"n04", "n08", "n12"}) {
    cluster.nodes[full]["spec"]["unschedulable"] = true;
  }
  AddJob(cluster, "job", 4);
  Annotate(cluster, "job", kPreferLevel, "leaf");
  Decision decision = cluster.Decide({}, {}, At(0))[0];
  EXPECT_EQ(decision.state, State::kPlaced);
  EXPECT_THAT(decision.message, HasSubstr("no leaf had room for all (railhead.io/prefer-level)"));
  Annotate(cluster, "job", kPreferWait, "5m");
  decision = cluster.Decide({}, {}, At(299))[0];
  EXPECT_EQ(decision.state, State::kWaiting);
  EXPECT_THAT(decision.message, HasSubstr("it waits for one leaf until 00:05:00 UTC"));
  EXPECT_THAT(decision.message, HasSubstr("fits without railhead.io/prefer-wait"));
  EXPECT_THAT(decision.message, Not(HasSubstr("requireLevel")));
  EXPECT_THAT(decision.notes, ElementsAre(HasSubstr("it waits for one leaf")));
  EXPECT_EQ(cluster.Decide({}, {}, At(300))[0].state, State::kPlaced);
  // It would wait anyway.
  Annotate(cluster, "job", kRequireLevel, "spine");
  constexpr const char* kMoreFull[] = {"n05", "n06", "n09", "n10", "n11"};
  for (const char* full : kMoreFull) cluster.nodes[full]["spec"]["unschedulable"] = true;
  decision = cluster.Decide({}, {}, At(299))[0];
  EXPECT_EQ(decision.state, State::kWaiting);
  EXPECT_THAT(decision.message, Not(HasSubstr("fits without railhead.io/prefer-wait")));
  EXPECT_THAT(decision.message, HasSubstr("it waits for one leaf until 00:05:00 UTC"));
  Annotate(cluster, "job", kRequireLevel, "");
  for (const char* full : kMoreFull) cluster.nodes[full]["spec"]["unschedulable"] = false;
  // No need to wait where it can be had.
  cluster.nodes["n12"]["spec"]["unschedulable"] = false;
  EXPECT_THAT(NodesOf(cluster.Decide({}, {}, At(0))[0]), ElementsAre("n12", "n13", "n14", "n15"));
}

TEST(Planner, APreferredLevelThatTheClusterDoesNotHaveIsNamedAndNoReasonToWait) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 4);
  Annotate(cluster, "job", kPreferLevel, "rack");
  Annotate(cluster, "job", kPreferWait, "5m");
  const Decision decision = cluster.Decide({}, {}, At(0))[0];
  EXPECT_EQ(decision.state, State::kPlaced);
  EXPECT_THAT(decision.message, HasSubstr("there is no level rack"));
}

TEST(Planner, APreferredLevelDoesNotReplaceARequiredOneThatTheClusterDoesNotHave) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 4, {.require_level = "nvlink"});
  Annotate(cluster, "job", kPreferLevel, "leaf");
  Annotate(cluster, "job", kPreferWait, "5m");
  for (const int second : {0, 299, 300}) {
    const Decision decision = cluster.Decide({}, {}, At(second))[0];
    EXPECT_EQ(decision.state, State::kIncomplete) << second;
    EXPECT_THAT(decision.message, HasSubstr("has no level \"nvlink\"")) << second;
  }
}

TEST(Planner, AWaitEndsWhenThePodsSayItDoes) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 17, {.second = 5});
  Annotate(cluster, "job", kTimeout, "1m");
  Annotate(cluster, "job", kTimeoutPolicy, "fail");
  EXPECT_EQ(cluster.Decide({}, {}, At(64))[0].state, State::kWaiting);
  Decision decision = cluster.Decide({}, {}, At(65))[0];
  EXPECT_EQ(decision.state, State::kTimedOut);
  EXPECT_TRUE(decision.gang.gated[0]->member->terms->fails_at_timeout);
  EXPECT_THAT(decision.message,
              AllOf(HasSubstr("waited for 1m (railhead.io/gang-timeout): its pods fail"),
                    HasSubstr("room for 16 of 17 pods")));
  // Also while pods are missing; but not where there is room.
  cluster.pods.erase("job-0");
  EXPECT_EQ(cluster.Decide({}, {}, At(65))[0].state, State::kTimedOut);
  Annotate(cluster, "job", kGangSize, "16");
  EXPECT_EQ(cluster.Decide({}, {}, At(65))[0].state, State::kPlaced);
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

  // Who comes instead of one that is lost gets the rails of those that are still there.
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

TEST(Planner, OnlyWhoAsksIsToldWhyAGangWaits) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 17);
  DecideOptions options;
  options.explain = [](const Gang&) { return false; };
  const Decision decision = cluster.Decide({}, {}, options)[0];
  EXPECT_EQ(decision.state, State::kWaiting);
  EXPECT_EQ(decision.message, "");
}

TEST(Planner, APodThatComesBackGoesBesideItsNeighboursInRank) {
  SmallCluster cluster = TwoSpines();
  cluster.nodes["n03"]["spec"]["unschedulable"] = true;
  AddJob(cluster, "job", 6);
  cluster.ReleaseAll(cluster.Decide());
  ASSERT_EQ(cluster.Bind(), 0);
  EXPECT_THAT(cluster.NodesOf("true"), ElementsAre("n00", "n01", "n02", "n04", "n05", "n06"));
  cluster.nodes["n03"]["spec"]["unschedulable"] = false;
  // Rank 4 is lost with its node, then rank 1: each has a neighbour in a leaf of its own.
  for (const auto& [node, index] : {std::pair("n05", 4), std::pair("n01", 1)}) {
    EXPECT_TRUE(index == 4 || NodesOf(cluster.Decide()[0]) == std::vector<std::string>{"n07"});
    cluster.nodes[node]["spec"]["unschedulable"] = true;
    cluster.AddPod({.name = absl::StrCat("job-", index),
                    .gang = "true",
                    .size = 6,
                    .owner = "job",
                    .index = index});
  }
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("n03", "n07"));
  // Where one of them has no place there, both go where the gang is.
  cluster.nodes["n03"]["spec"]["unschedulable"] = true;
  cluster.nodes["n07"]["spec"]["unschedulable"] = true;
  EXPECT_THAT(NodesOf(cluster.Decide()[0]), ElementsAre("n08", "n09"));
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

TEST(Planner, NodesThatSomebodyElseHasChosenAreLookedAtAndKept) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 4);
  const std::vector<const char*> chosen = {"n00", "n04", "n01", "n05"};
  for (size_t i = 0; i < chosen.size(); ++i) {
    cluster.pods[absl::StrCat("job-", i)]["spec"]["nodeSelector"] = {
        {kHostname, chosen[i]}, {"topology.railhead.io/leaf", i % 2 == 0 ? "l0" : "l1"}};
  }
  Decision decision = cluster.Decide()[0];
  EXPECT_EQ(decision.state, State::kPlaced);
  EXPECT_THAT(NodesOf(decision), ElementsAre("n00", "n04", "n01", "n05"));
  EXPECT_THAT(
      decision.message,
      AllOf(HasSubstr("the pods' nodeSelector chose the nodes"),
            HasSubstr("4 neighbours in rank are in different domains of leaf (minimum: 2)")));
  Fill(cluster, 1);
  decision = cluster.Decide()[0];
  EXPECT_EQ(decision.state, State::kWaiting);
  EXPECT_THAT(decision.message, HasSubstr("node n00, which spec.nodeSelector names, has room for "
                                          "0 of 1 pod: GPUs in use"));
  cluster.pods.erase("on-n00");
  ASSERT_TRUE(cluster.Release(cluster.Decide()[0].assignments[1], "x"));
  EXPECT_EQ(cluster.pods["job-1"]["spec"]["nodeSelector"][kHostname], "n04");
}

TEST(Planner, PodsThatAskForUnlikeAmountsArePlacedByTheMostOfEach) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 2, {.hcas = 4});
  // Two fit on a node by their HCAs, and not by what the leader and the worker ask for beside.
  cluster.pods["job-0"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "40";
  cluster.pods["job-1"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Gi";
  for (auto& [name, node] : cluster.nodes) {
    node["status"]["allocatable"]["cpu"] = "64";
    node["status"]["allocatable"]["memory"] = "64Gi";
  }
  const Decision decision = cluster.Decide()[0];
  EXPECT_EQ(decision.state, State::kPlaced) << decision.message;
  EXPECT_THAT(NodesOf(decision), ElementsAre("n00", "n01"));
}

TEST(Planner, AGangThatIsMadeAnewAvoidsWhereItFailedIfThatCostsNoDomain) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 4);
  const std::string lineage = GangsOf(cluster.Pods(), {}, {})[0].lineage;
  DecideOptions options;
  options.failed_on[lineage] = {"n02"};
  EXPECT_THAT(NodesOf(cluster.Decide({}, {}, options)[0]), Not(Contains("n02")));
  // Nowhere else is there room for it.
  for (auto& [name, node] : cluster.nodes) {
    if (name > "n03") node["spec"]["unschedulable"] = true;
  }
  EXPECT_THAT(NodesOf(cluster.Decide({}, {}, options)[0]), ElementsAre("n00", "n01", "n02", "n03"));
}

TEST(Planner, UnlikePodsAreNotGuessedAt) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 2);
  cluster.pods["job-1"]["spec"]["nodeSelector"] = {{"a", "b"}};
  EXPECT_THAT(cluster.Decide()[0].message,
              AllOf(HasSubstr("pods job-0 and job-1 do not request the same nodes"),
                    HasSubstr("recreate them")));
}

}  // namespace
}  // namespace railhead::op::gangs
