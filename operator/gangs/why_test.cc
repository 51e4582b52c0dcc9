// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "kube/json.h"
#include "operator/gangs/testing/small_cluster.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::SmallCluster;

// A leaf of four nodes, of which one is cordoned, and a gang of so many pods.
SmallCluster Cluster(int pods) {
  SmallCluster cluster;
  for (const char* name : {"n0", "n1", "n2", "n3"}) cluster.AddNode(name, "s", "l");
  cluster.nodes["n0"]["spec"]["unschedulable"] = true;
  for (int i = 0; i < pods; ++i) {
    cluster.AddPod({.name = absl::StrCat("train-", i),
                    .gang = "true",
                    .size = pods,
                    .owner = "train",
                    .index = i});
  }
  return cluster;
}

ClusterObjects ObjectsOf(const SmallCluster& cluster) {
  ClusterObjects objects;
  Json list = {{"kind", "List"}, {"items", Json::array()}};
  for (const auto& [name, node] : cluster.nodes) list["items"].push_back(node);
  for (const auto& [name, pod] : cluster.pods) list["items"].push_back(pod);
  Collect(std::move(list), objects);
  return objects;
}

TEST(Why, AGangThatWaitsSaysWhatIsInTheWayAndTheSmallestChange) {
  const absl::StatusOr<WhyAnswer> answer =
      Why(ObjectsOf(Cluster(4)), "", "train", absl::UnixEpoch());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->state, "waiting");
  EXPECT_TRUE(answer->pending());
  EXPECT_EQ(answer->pods, 4U);
  EXPECT_EQ(answer->gated, 4U);
  bool cordoned = false;
  bool change = false;
  for (const placement::Reason& reason : answer->reasons) {
    cordoned = cordoned || (reason.kind == placement::Reason::Kind::kExcluded &&
                            reason.what == "unschedulable: cordoned" && reason.nodes == 1);
    change = change || (reason.kind == placement::Reason::Kind::kChange && reason.what == "nodes" &&
                        reason.nodes == 1);
  }
  EXPECT_TRUE(cordoned) << answer->message;
  EXPECT_TRUE(change) << answer->message;
}

TEST(Why, AGangWithRoomIsPlacedAndOneThatRunsRuns) {
  SmallCluster cluster = Cluster(3);
  EXPECT_EQ(Why(ObjectsOf(cluster), "train", "train", absl::UnixEpoch())->state, "placed");
  cluster.ReleaseAll(cluster.Decide());
  WhyAnswer answer = *Why(ObjectsOf(cluster), "", "train", absl::UnixEpoch());
  EXPECT_EQ(answer.state, "pending");
  cluster.pods["train-1"]["status"]["conditions"] = {{{"type", "PodScheduled"},
                                                      {"status", "False"},
                                                      {"reason", "Unschedulable"},
                                                      {"message", "0/4 nodes are available"}}};
  answer = *Why(ObjectsOf(cluster), "", "train", absl::UnixEpoch());
  EXPECT_THAT(answer.scheduler, ElementsAre(Pair("0/4 nodes are available", 1)));
  cluster.Bind();
  answer = *Why(ObjectsOf(cluster), "", "train-2", absl::UnixEpoch());
  EXPECT_EQ(answer.state, "running");
  EXPECT_FALSE(answer.pending());
  EXPECT_EQ(answer.bound, 3U);
}

TEST(Why, AGangThatFitsAndIsNotStartedIsPending) {
  SmallCluster cluster = Cluster(3);
  const absl::Time made = absl::FromCivil(absl::CivilSecond(2026, 1, 1), absl::UTCTimeZone());
  WhyAnswer answer = *Why(ObjectsOf(cluster), "", "train", made + absl::Seconds(30));
  EXPECT_EQ(answer.state, "placed");
  EXPECT_THAT(answer.notes, IsEmpty());
  answer = *Why(ObjectsOf(cluster), "", "train", made + absl::Minutes(61) + absl::Seconds(7));
  EXPECT_TRUE(answer.pending());
  EXPECT_EQ(answer.state, "pending");
  const char* const note =
      "fits, but the operator has not started it for 1h1m; see its events and railhead doctor";
  EXPECT_THAT(answer.notes, ElementsAre(note));
  EXPECT_THAT(answer.message, HasSubstr(absl::StrCat(note, "; 3 pods on 3 nodes")));
  EXPECT_EQ(answer.gated, 3U);

  ClusterObjects objects = ObjectsOf(cluster);
  Json event = {{"kind", "Event"},
                {"reason", "GangBlocked"},
                {"message", "a webhook rejects the patch"},
                {"lastTimestamp", "2026-01-01T00:00:05Z"},
                {"involvedObject", {{"uid", "train"}}}};
  Collect(event, objects);
  answer = *Why(objects, "", "train", made + absl::Seconds(30));
  EXPECT_TRUE(answer.pending());
  EXPECT_THAT(
      answer.notes,
      ElementsAre("fits, but the operator could not start it: a webhook rejects the patch"));
  event["reason"] = "GangWaiting";
  event["lastTimestamp"] = "2026-01-01T00:00:06Z";
  Collect(event, objects);
  EXPECT_FALSE(Why(objects, "", "train", made + absl::Seconds(30))->pending());
}

TEST(Why, AGangWhosePodsHaveEndedIsFinished) {
  SmallCluster cluster = Cluster(3);
  cluster.ReleaseAll(cluster.Decide());
  EXPECT_EQ(cluster.Bind(), 0);
  for (auto& [name, pod] : cluster.pods) pod["status"]["phase"] = "Succeeded";
  const WhyAnswer answer = *Why(ObjectsOf(cluster), "", "train", absl::UnixEpoch());
  EXPECT_EQ(answer.state, "finished");
  EXPECT_FALSE(answer.pending());
  EXPECT_EQ(answer.pods, 3U);
}

// The pods of a restarted JobSet's former attempt terminate while those of the new one wait.
TEST(Why, PodsThatTerminateDoNotMakeAJobAmbiguous) {
  SmallCluster cluster;
  for (const char* name : {"n0", "n1"}) cluster.AddNode(name, "s", "l");
  const auto add = [&cluster](const char* attempt) {
    for (int i = 0; i < 2; ++i) {
      const std::string name = absl::StrCat("js-w-", i, "-", attempt);
      cluster.AddPod({.name = name, .gang = "true", .size = 2, .index = i});
      Json& labels = cluster.pods[name]["metadata"]["labels"];
      labels["jobset.sigs.k8s.io/jobset-name"] = "js";
      labels["jobset.sigs.k8s.io/replicatedjob-name"] = "w";
      labels["jobset.sigs.k8s.io/restart-attempt"] = attempt;
    }
  };
  add("0");
  cluster.ReleaseAll(cluster.Decide());
  ASSERT_EQ(cluster.Bind(), 0);
  for (auto& [name, pod] : cluster.pods) {
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  }
  EXPECT_EQ(Why(ObjectsOf(cluster), "", "js", absl::UnixEpoch())->state, "finished");
  add("1");
  const absl::StatusOr<WhyAnswer> answer = Why(ObjectsOf(cluster), "", "js", absl::UnixEpoch());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->gated, 2U);
  EXPECT_EQ(answer->state, "waiting");
}

TEST(Why, PodsThatHaveEndedDoNotRun) {
  SmallCluster cluster;
  cluster.AddNode("n0", "s", "l");
  for (int i = 0; i < 2; ++i) {
    const std::string name = absl::StrCat("solo-", i);
    cluster.AddPod({.name = name});
    cluster.pods[name]["metadata"]["ownerReferences"] = {
        {{"kind", "Job"}, {"name", "solo"}, {"uid", "solo"}, {"controller", true}}};
    cluster.pods[name]["spec"]["nodeName"] = "n0";
    cluster.pods[name]["status"]["phase"] = i == 0 ? "Succeeded" : "Failed";
  }
  const auto state = [&cluster] {
    return Why(ObjectsOf(cluster), "", "solo", absl::UnixEpoch())->state;
  };
  EXPECT_EQ(state(), "finished");
  cluster.pods["solo-0"]["status"]["phase"] = "Running";
  EXPECT_EQ(state(), "running");
  // One that was rejected before it had a node does not wait for one.
  cluster.pods["solo-1"]["spec"].erase("nodeName");
  EXPECT_EQ(state(), "running");
  cluster.pods["solo-1"]["status"]["phase"] = "Pending";
  EXPECT_EQ(state(), "pending");
}

TEST(Why, AJobSetIsNamedByTheLabelOfItsPods) {
  SmallCluster cluster;
  for (const char* job : {"js-a-0", "js-b-0"}) {
    const std::string pod = absl::StrCat(job, "-0");
    cluster.AddPod({.name = pod});
    cluster.pods[pod]["metadata"]["ownerReferences"] = {
        {{"kind", "Job"}, {"name", job}, {"uid", job}, {"controller", true}}};
    cluster.pods[pod]["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = "js";
  }
  const absl::StatusOr<WhyAnswer> answer = Why(ObjectsOf(cluster), "", "js", absl::UnixEpoch());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->kind, "JobSet");
  EXPECT_EQ(answer->pods, 2U);
  EXPECT_EQ(Why(ObjectsOf(cluster), "", "js-b-0", absl::UnixEpoch())->pods, 1U);
}

TEST(Why, WhatIsAheadInTheQueueTakesItsRoom) {
  SmallCluster cluster = Cluster(3);
  cluster.AddPod({.name = "small-0", .gang = "small", .size = 1, .second = 9});
  EXPECT_EQ(Why(ObjectsOf(cluster), "", "small", absl::UnixEpoch())->state, "waiting");
}

// The same cluster, whose HCAs are another plugin's.
ClusterObjects WithOtherResource(const ClusterObjects& objects, const Json& config_map) {
  ClusterObjects others;
  for (const auto* list : {&objects.nodes, &objects.pods}) {
    for (const Json& object : *list) {
      Collect(*kube::ParseJson(
                  absl::StrReplaceAll(kube::DumpJson(object), {{"rdma/hca", "vendor.com/nic"}})),
              others);
    }
  }
  Collect(config_map, others);
  return others;
}

std::vector<std::string> MessagesOf(const ClusterObjects& objects) {
  const WhyAnswer answer = Why(objects, "", "train", absl::UnixEpoch()).value();
  std::vector<std::string> messages;
  for (const placement::Reason& reason : answer.reasons) {
    messages.push_back(reason.message);
  }
  return messages;
}

TEST(Why, TheOperatorsRdmaResourcesAreHcas) {
  SmallCluster cluster = Cluster(4);
  cluster.nodes["n1"]["status"]["allocatable"]["rdma/hca"] = "1";
  const std::vector<std::string> messages = MessagesOf(ObjectsOf(cluster));
  Json config_map = {{"kind", "ConfigMap"},
                     {"metadata", {{"labels", {{"app.kubernetes.io/component", "operator"}}}}},
                     {"data", {{"operator.yaml", "rdmaResources: [vendor.com/nic]\n"}}}};
  EXPECT_EQ(MessagesOf(WithOtherResource(ObjectsOf(cluster), config_map)), messages);
  // One that the operator would refuse, or that is not its own, says nothing.
  config_map["data"]["operator.yaml"] = "rdmaResources: 7\n";
  EXPECT_NE(MessagesOf(WithOtherResource(ObjectsOf(cluster), config_map)), messages);
  config_map["data"]["operator.yaml"] = "rdmaResources: [vendor.com/nic]\n";
  config_map["metadata"]["labels"].clear();
  EXPECT_NE(MessagesOf(WithOtherResource(ObjectsOf(cluster), config_map)), messages);
}

TEST(Why, PodsThatAreNoGangHaveTheSchedulersWord) {
  SmallCluster cluster;
  cluster.AddPod({.name = "solo"});
  cluster.pods["solo"]["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  const WhyAnswer answer = *Why(ObjectsOf(cluster), "", "solo", absl::UnixEpoch());
  EXPECT_EQ(answer.kind, "Pod");
  EXPECT_EQ(answer.state, "pending");
  EXPECT_THAT(answer.scheduler, ElementsAre(Pair("Unschedulable", 1)));
}

TEST(Why, OnlyTheLastEventsOfThisGangAreTold) {
  ClusterObjects objects = ObjectsOf(Cluster(4));
  for (int i = 0; i < 7; ++i) {
    Collect({{"kind", "Event"},
             {"reason", "GangWaiting"},
             {"message", absl::StrCat("why ", i)},
             {"lastTimestamp", absl::StrCat("2026-01-01T00:00:0", 9 - i, "Z")},
             {"involvedObject", {{"uid", i == 2 ? "other" : "train"}}}},
            objects);
  }
  EXPECT_THAT(Why(objects, "", "train", absl::UnixEpoch())->told,
              ElementsAre(Pair("GangWaiting", "why 5"), Pair("GangWaiting", "why 4"),
                          Pair("GangWaiting", "why 3"), Pair("GangWaiting", "why 1"),
                          Pair("GangWaiting", "why 0")));
}

TEST(Why, WhoIsNotThereOrNotAloneIsNamed) {
  SmallCluster cluster = Cluster(4);
  EXPECT_EQ(Why(ObjectsOf(cluster), "", "nobody", absl::UnixEpoch()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Why(ObjectsOf(cluster), "elsewhere", "train", absl::UnixEpoch()).status().code(),
            absl::StatusCode::kNotFound);
  cluster.pods["train-3"]["metadata"]["namespace"] = "test";
  const absl::Status status = Why(ObjectsOf(cluster), "", "train", absl::UnixEpoch()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is ambiguous: test/train with pod train-3, train/train with pod train-0"));
  EXPECT_TRUE(Why(ObjectsOf(cluster), "test", "train", absl::UnixEpoch()).ok());
}

TEST(Why, WhatIsNoObjectIsLeftOut) {
  ClusterObjects objects;
  for (const char* text : {"1", "[]", "{}", R"({"items": 3})", R"({"items": [1, {"kind": 2}]})"}) {
    Collect(Json::parse(text), objects);
  }
  EXPECT_THAT(objects.nodes, IsEmpty());
  EXPECT_THAT(objects.pods, IsEmpty());
}

}  // namespace
}  // namespace railhead::op::gangs
