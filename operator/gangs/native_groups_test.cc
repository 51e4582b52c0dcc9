// SPDX-License-Identifier: Apache-2.0
//
// Pods of a PodGroup of kube-scheduler's, beside gangs of ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kube/testing/soon.h"
#include "operator/gangs/gang_machine.h"
#include "operator/gangs/testing/controller_scene.h"
#include "operator/gangs/testing/small_cluster.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using kube::testing::Soon;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::PodSpec;
using testing::SmallCluster;

// As admission leaves it: it has no gate, and waits for its rank.
Json NativePodObject(const PodSpec& spec) {
  Json pod = testing::PodObject(spec);
  pod["spec"].erase("schedulingGates");
  pod["spec"]["schedulingGroup"] = {{"podGroupName", "native"}};
  pod["spec"]["subdomain"] = "ring";
  pod["spec"]["hostname"] = spec.name;
  pod["metadata"]["annotations"][kRank] = "";
  return pod;
}

class NativeGroups : public ::testing::Test {
 protected:
  NativeGroups() {
    for (int i = 0; i < 8; ++i) {
      cluster_.AddNode(absl::StrCat("n", i), "s0", absl::StrCat("l", i / 4));
    }
  }

  Json& AddNative(const std::string& name, int size, const std::string& node = "") {
    Json pod = NativePodObject({.name = name, .gang = "true", .size = size, .owner = "native"});
    if (!node.empty()) pod["spec"]["nodeName"] = node;
    return cluster_.pods[name] = std::move(pod);
  }

  // Returns what the leader does to pods whose names begin with `name`: "pod rank" or "pod ->
  // node".
  std::vector<std::string> DoneAbout(absl::string_view name) {
    tree_ = BuildTree(cluster_.Nodes());
    ClusterRoom room(&tree_);
    std::vector<std::string> done;
    for (const Work& work : machine_.Next(cluster_.Pods(), room, now_).works) {
      for (const Action& action : work.actions) {
        const Assignment& there = action.assignment;
        if (!absl::StartsWith(there.pod->name, name)) continue;
        done.push_back(action.kind == Action::Kind::kRelease
                           ? absl::StrCat(there.pod->name, " -> ", there.node)
                           : absl::StrCat(there.pod->name, " ", there.rank.value_or(-1)));
      }
    }
    return done;
  }

  absl::Time LookAgain() {
    tree_ = BuildTree(cluster_.Nodes());
    ClusterRoom room(&tree_);
    return machine_.Next(cluster_.Pods(), room, now_).look_again;
  }

  SmallCluster cluster_;
  NodeTree tree_;
  GangMachine machine_{{}};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(NativeGroups, WhatTheyWaitForIsNotBookedAndWhatTheyHaveIs) {
  // One that says where it wants to go, and is the copy of one of ours.
  Json& pod = AddNative("native-0", 2);
  pod["spec"]["nodeSelector"][kHostname] = "n0";
  pod["metadata"]["annotations"][kPlacement] = "copied";
  AddNative("native-1", 2, "n1");
  for (int i = 2; i < 8; ++i) cluster_.nodes[absl::StrCat("n", i)]["spec"]["unschedulable"] = true;
  cluster_.AddPod({.name = "ours", .gang = "g", .size = 1});
  EXPECT_THAT(DoneAbout("ours"), IsEmpty());
  now_ += GangMachine::kUntilScheduled;
  EXPECT_THAT(DoneAbout("ours"), ElementsAre("ours -> n0"));
  pod["spec"]["nodeName"] = "n0";
  EXPECT_THAT(DoneAbout("ours"), IsEmpty());
}

TEST_F(NativeGroups, NothingIsReleasedWhileTheSchedulerMayBePlacingThem) {
  AddNative("native-0", 2, "n0");
  Json& last = AddNative("native-1", 2);
  cluster_.AddPod({.name = "ours", .gang = "g", .size = 1});
  EXPECT_THAT(DoneAbout("ours"), IsEmpty());
  // Whichever comes first: its node, ...
  last["spec"]["nodeName"] = "n1";
  EXPECT_THAT(DoneAbout("ours"), ElementsAre("ours -> n2"));
  // ... that there is none, ...
  last["spec"].erase("nodeName");
  EXPECT_THAT(DoneAbout("ours"), IsEmpty());
  last["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  EXPECT_THAT(DoneAbout("ours"), ElementsAre("ours -> n1"));
  // ... or the time in which a scheduler answers. It is looked at by then.
  last["status"].erase("conditions");
  EXPECT_EQ(LookAgain(), now_ + GangMachine::kUntilScheduled);
  now_ += GangMachine::kUntilScheduled;
  EXPECT_THAT(DoneAbout("ours"), ElementsAre("ours -> n1"));
}

TEST_F(NativeGroups, OnesThatComeAllTheTimeHoldUpNobodyForLonger) {
  cluster_.AddPod({.name = "ours", .gang = "g", .size = 1});
  for (int second = 0; second < 10; ++second) {
    Json& pod = AddNative(absl::StrCat("native-", second), 20);
    pod["metadata"]["creationTimestamp"] = absl::FormatTime(now_, absl::UTCTimeZone());
    EXPECT_THAT(DoneAbout("ours"), IsEmpty());
    now_ += absl::Seconds(1);
  }
  EXPECT_THAT(DoneAbout("ours"), ElementsAre("ours -> n0"));
}

TEST_F(NativeGroups, APodThatTheSchedulerDoesNotBindIsLeftToIt) {
  Json& pod = AddNative("native-0", 2);
  pod["metadata"]["annotations"][kPlacement] = "copied";
  pod["spec"]["nodeSelector"][kHostname] = "n0";
  pod["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet";
  pod["status"]["conditions"] = {{{"type", "PodScheduled"},
                                  {"status", "False"},
                                  {"reason", "Unschedulable"},
                                  {"message", "Insufficient rdma/hca"}}};
  EXPECT_THAT(DoneAbout("native"), IsEmpty());
  now_ += absl::Minutes(5);
  EXPECT_THAT(DoneAbout("native"), IsEmpty());
}

TEST_F(NativeGroups, RanksFollowTheFabricOnceAllHaveTheirNodes) {
  AddNative("native-0", 4, "n6");
  AddNative("native-1", 4, "n0");
  AddNative("native-2", 4, "n5");
  Json& last = AddNative("native-3", 4);
  EXPECT_THAT(DoneAbout("native"), IsEmpty());
  last["spec"]["nodeName"] = "n2";
  EXPECT_THAT(DoneAbout("native"),
              ElementsAre("native-1 0", "native-3 1", "native-2 2", "native-0 3"));
}

TEST_F(NativeGroups, APodThatIsMadeAgainGetsTheRankThatIsFree) {
  for (int i = 0; i < 4; ++i) {
    AddNative(absl::StrCat("native-", i), 4,
              absl::StrCat("n", i))["metadata"]["annotations"][kRank] = absl::StrCat(i);
  }
  cluster_.pods.erase("native-1");
  AddNative("native-new", 4, "n7");
  EXPECT_THAT(DoneAbout("native"), ElementsAre("native-new 1"));
  // What did not pass this admission has its rank, or asks for none.
  cluster_.pods["native-new"]["metadata"]["annotations"].erase(kRank);
  EXPECT_THAT(DoneAbout("native"), IsEmpty());
}

TEST_F(NativeGroups, AGateOfOursThatIsThereNeverthelessIsTakenAway) {
  AddNative("native-0", 2)["spec"]["schedulingGates"] = {{{"name", kGate}}};
  EXPECT_THAT(DoneAbout("native"), ElementsAre("native-0 -1"));
}

// The same through the API.
class NativeGroupsInACluster : public testing::ControllerScene {
 protected:
  void PutNative(int number, const std::string& node) {
    Json pod = NativePodObject(
        {.name = absl::StrCat("native-", number), .gang = "true", .size = 2, .owner = "native"});
    pod["metadata"].erase("namespace");
    pod["metadata"]["uid"] = absl::StrCat("uid-", number);
    if (!node.empty()) pod["spec"]["nodeName"] = node;
    api_.Put(Pod(absl::StrCat("native-", number)), pod);
  }
  std::string Annotation(int number, const char* name) const {
    return kube::StringAt(api_.At(Pod(absl::StrCat("native-", number))),
                          {"metadata", "annotations", name});
  }
};

TEST_F(NativeGroupsInACluster, RanksAreWrittenIntoThePods) {
  StartLeading();
  PutNative(0, "n5");
  PutNative(1, "");
  ASSERT_TRUE(CaughtUp());
  EXPECT_EQ(Annotation(0, kRank), "");
  PutNative(1, "n1");
  ASSERT_TRUE(Soon([&] { return !Annotation(0, kRank).empty() && !Annotation(1, kRank).empty(); }));
  EXPECT_EQ(Annotation(0, kRank), "1");
  EXPECT_EQ(Annotation(1, kRank), "0");
  EXPECT_EQ(Annotation(0, kMaster), "native-1.ring");
}

TEST_F(NativeGroupsInACluster, AGateIsTakenAwayAndNothingElseChanges) {
  StartLeading();
  PutNative(0, "");
  Json pod = api_.At(Pod("native-0"));
  pod["spec"]["schedulingGates"] = {{{"name", kGate}}};
  api_.Put(Pod("native-0"), pod);
  ASSERT_TRUE(Soon([&] { return api_.At(Pod("native-0"))["spec"]["schedulingGates"].empty(); }));
  EXPECT_EQ(Annotation(0, kRank), "");
  EXPECT_EQ(NodeOf("native-0"), "");
}

}  // namespace
}  // namespace railhead::op::gangs
