// SPDX-License-Identifier: Apache-2.0
#include "operator/control/gang_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "kube/json.h"
#include "kube/testing/soon.h"
#include "operator/gangs/testing/controller_scene.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using kube::testing::Soon;
using ::testing::HasSubstr;

class GangControllerTest : public testing::ControllerScene {};

TEST_F(GangControllerTest, NodesAreWherePeopleSay) {
  // By their labels n0 to n3 are one leaf, and n4 to n7 the other.
  const kube::ObjectRef fabric = {"railhead.io/v1alpha1", "fabrictopologies", "", "cluster"};
  api_.Put(fabric, Json::parse(R"({
    "apiVersion": "railhead.io/v1alpha1", "kind": "FabricTopology",
    "metadata": {"name": "cluster"}, "spec": {"model": {
      "topology": "fat-tree", "levels": ["row"], "rails": 8, "domains": [
        {"name": "r0", "nodes": [{"name": "n0", "gpus": 8, "hcas": 8},
                                 {"name": "n2", "gpus": 8, "hcas": 8},
                                 {"name": "n4", "gpus": 8, "hcas": 8}]},
        {"name": "r1", "nodes": [{"name": "n1", "gpus": 8, "hcas": 8},
                                 {"name": "n6", "gpus": 8, "hcas": 8}]}]}}})"));
  PutJob("job", 2);
  StartLeading(true);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 2) == 2; }));
  EXPECT_EQ(NodeOf("job-0"), "n1");
  EXPECT_EQ(NodeOf("job-1"), "n6");
  // Nobody says it any more: their labels do.
  api_.Remove(fabric);
  ASSERT_TRUE(Soon([&] { return caches_->topologies().cache().size() == 0; }));
  PutJob("next", 3);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("next", 3) == 3; }));
  std::vector<std::string> nodes;
  for (int i = 0; i < 3; ++i) nodes.push_back(NodeOf(absl::StrCat("next-", i)));
  EXPECT_EQ(absl::StrJoin(nodes, " "), "n0 n2 n3");
}

TEST_F(GangControllerTest, SendsAWholeGangToItsNodesAndTellsItsJob) {
  StartLeading();
  PutJob("job", 4);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4; }));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(NodeOf(absl::StrCat("job-", i)), absl::StrCat("n", i));
    const Json pod = api_.At(Pod(absl::StrCat("job-", i)));
    EXPECT_EQ(pod["metadata"]["annotations"][kRank], absl::StrCat(i));
    EXPECT_EQ(pod["spec"]["schedulingGates"], Json::array());
  }
  ASSERT_TRUE(Soon([&] { return !Told("GangPlaced", "job").empty(); }));
  EXPECT_THAT(Told("GangPlaced", "job"), HasSubstr("4 pods on 4 nodes"));
  EXPECT_EQ(controller_->Counts().placed, 1U);
}

TEST_F(GangControllerTest, WhoDoesNotLeadDoesNothing) {
  leads_ = false;
  PutJob("job", 4);
  StartLeading();
  ASSERT_TRUE(Soon([&] {
    const auto states = caches_->States();
    return std::all_of(states.begin(), states.end(),
                       [](const auto& state) { return state.synced; });
  }));
  EXPECT_EQ(ReleasedOf("job", 4), 0);
  EXPECT_EQ(controller_->Counts(), GangCounts());
  leads_ = true;
  controller_->OnLead();
  EXPECT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4; }));
}

TEST_F(GangControllerTest, AGangWithoutRoomIsToldWhyAndStartsWhenThereIs) {
  StartLeading();
  PutJob("first", 6);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("first", 6) == 6; }));
  PutJob("second", 4);
  ASSERT_TRUE(Soon([&] { return !Told("GangWaiting", "second").empty(); }));
  EXPECT_THAT(Told("GangWaiting", "second"), HasSubstr("room for 2 of 4 pods"));
  EXPECT_TRUE(Soon([&] { return controller_->Counts().waiting == 1; }));
  EXPECT_EQ(ReleasedOf("second", 4), 0);
  for (int i = 0; i < 6; ++i) api_.Remove(Pod(absl::StrCat("first-", i)));
  EXPECT_TRUE(Soon([&] { return ReleasedOf("second", 4) == 4; }));
}

TEST_F(GangControllerTest, ANewLeaderFinishesWhatTheLastOneLeftHalfDone) {
  failing_.good = 2;
  failing_.lost = 1;  // one more is done without anybody knowing
  PutJob("job", 4);
  StartLeading();
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 3; }));
  Stop();
  PutJob("other", 4);
  failing_.good = 1'000'000;
  StartLeading();
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4 && ReleasedOf("other", 4) == 4; }));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(NodeOf(absl::StrCat("job-", i)), absl::StrCat("n", i));
    EXPECT_EQ(NodeOf(absl::StrCat("other-", i)), absl::StrCat("n", i + 4));
  }
}

TEST_F(GangControllerTest, AServerThatDoesNotAnswerIsAskedAgainForTheSameNodes) {
  failing_.good = 1;
  failing_.lost = 1;
  PutJob("job", 4);
  StartLeading();
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 2; }));
  // A gang that comes meanwhile gets none of what the first one was promised.
  PutJob("other", 4);
  failing_.good = 1'000'000;
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4 && ReleasedOf("other", 4) == 4; }));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(NodeOf(absl::StrCat("job-", i)), absl::StrCat("n", i));
    EXPECT_EQ(NodeOf(absl::StrCat("other-", i)), absl::StrCat("n", i + 4));
  }
}

TEST_F(GangControllerTest, APodThatTheSchedulerRefusesComesBackAndGoesElsewhere) {
  StartLeading();
  PutJob("job", 4);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4; }));
  Json pod = api_.At(Pod("job-2"));
  pod["metadata"]["annotations"][kEvictable] = "true";
  api_.Put(Pod("job-2"), pod);
  Unschedulable("job-2", "0/8 nodes are available: 1 Insufficient rdma/hca.");
  ASSERT_TRUE(CaughtUp());
  seconds_ += 31;
  controller_->OnLead();
  ASSERT_TRUE(Soon([&] { return !Told("GangReplanned", "job").empty(); }));
  EXPECT_THAT(Told("GangReplanned", "job"), HasSubstr("pod job-2 was assigned to node n2"));
  for (const Json& left : api_.In("/api/v1/pods")) EXPECT_NE(left["metadata"]["name"], "job-2");
  PutPod({.name = "job-2", .gang = "true", .size = 4, .owner = "job", .index = 2});
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4; }));
  EXPECT_NE(NodeOf("job-2"), "n2");
  EXPECT_EQ(controller_->Counts().replanned, 1U);
}

TEST_F(GangControllerTest, AGangThatLosesAPodIsNotPlacedInThatRound) {
  StartLeading();
  PutJob("job", 4);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4; }));
  Json pod = api_.At(Pod("job-2"));
  pod["metadata"]["annotations"][kEvictable] = "true";
  api_.Put(Pod("job-2"), pod);
  Unschedulable("job-2", "0/8 nodes are available: 1 Insufficient rdma/hca.");
  api_.Remove(Pod("job-3"));
  ASSERT_TRUE(CaughtUp());
  // In one round, job-2 is to be evicted and there is room for job-3.
  seconds_ += 31;
  PutPod({.name = "job-3", .gang = "true", .size = 4, .owner = "job", .index = 3});
  ASSERT_TRUE(Soon([&] { return !Told("GangReplanned", "job").empty(); }));
  ASSERT_TRUE(Soon([&] { return !NodeOf("job-3").empty(); }));
  ASSERT_TRUE(CaughtUp());
  ASSERT_TRUE(Soon([&] { return !Told("GangPlaced", absl::StrCat("later-", serial_)).empty(); }));
  EXPECT_EQ(controller_->Counts().placed, 4U);  // the job, job-3, and two of CaughtUp
}

TEST_F(GangControllerTest, NoGangWaitsForEvents) {
  std::atomic<bool> answers{false};
  std::atomic<int> asked{0};
  failing_.Refuse([&](const kube::ApiRequest& request) {
    if (!absl::StrContains(request.path, "/events")) return absl::OkStatus();
    ++asked;
    while (!answers) absl::SleepFor(absl::Milliseconds(5));
    return absl::OkStatus();
  });
  StartLeading();
  PutJob("first", 2);
  EXPECT_TRUE(Soon([&] { return asked > 0; }));
  EXPECT_EQ(ReleasedOf("first", 2), 2);
  PutJob("second", 4);
  EXPECT_TRUE(Soon([&] { return ReleasedOf("second", 4) == 4; }));
  EXPECT_EQ(asked, 1);
  answers = true;
  for (const char* job : {"first", "second"}) {
    EXPECT_TRUE(Soon([&] { return !Told("GangPlaced", job).empty(); })) << job;
  }
}

TEST_F(GangControllerTest, APodThatNobodyWouldMakeAgainIsNotEvicted) {
  StartLeading();
  PutPod({.name = "solo", .gang = "g", .size = 1});
  ASSERT_TRUE(Soon([&] { return !NodeOf("solo").empty(); }));
  Unschedulable("solo", "0/8 nodes are available: 1 Insufficient rdma/hca.");
  ASSERT_TRUE(CaughtUp());
  seconds_ += 31;
  controller_->OnLead();
  ASSERT_TRUE(Soon([&] { return !Told("GangBlocked", "solo").empty(); }));
  EXPECT_THAT(Told("GangBlocked", "solo"), HasSubstr("recreate it yourself"));
  EXPECT_TRUE(IsThere("solo"));
}

}  // namespace
}  // namespace railhead::op::gangs
