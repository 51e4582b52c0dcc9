// SPDX-License-Identifier: Apache-2.0
//
// Where the planner places the pods of a gang: levels of the topology, nodes that fit,
// neighbours in rank, what others hold, and the patches that release the pods.
#include "operator/gangs/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kube/json.h"
#include "operator/gangs/gang.h"
#include "operator/gangs/jobs_for_test.h"
#include "operator/gangs/testing/small_cluster.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::SmallCluster;
using State = Decision::State;

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
