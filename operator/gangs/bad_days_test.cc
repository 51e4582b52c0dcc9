// SPDX-License-Identifier: Apache-2.0
//
// What a cluster does to gangs on its bad days, and what must not come of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/json.h"
#include "kube/testing/soon.h"
#include "operator/gangs/testing/controller_scene.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using kube::testing::Soon;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kNoRoom[] =
    "0/8 nodes are available: 1 Insufficient rdma/hca, 7 node(s) didn't match Pod's node "
    "affinity/selector. no new claims to deallocate, preemption: 0/8 nodes are available: 8 "
    "Preemption is not helpful for scheduling.";

class BadDays : public testing::ControllerScene {
 protected:
  // Patches of pods whose names begin so are answered like this.
  void Deny(const std::string& pods, const absl::Status& answer) {
    failing_.Refuse([pods, answer](const kube::ApiRequest& request) {
      return request.method == "PATCH" && absl::StartsWith(request.path, "/api/v1/pods/" + pods)
                 ? answer
                 : absl::OkStatus();
    });
  }
};

const absl::Status& BrokenWebhook() {
  static const absl::Status kBroken = absl::UnavailableError(
      "patch pods: HTTP 500: failed calling webhook \"x.example\": connection refused");
  return kBroken;
}

TEST_F(BadDays, AJobsPodIsNotTakenAwayWhereItsJobCountsThatAsAFailure) {
  StartLeading();
  PutJob("job", 4);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4; }));
  Unschedulable("job-2", kNoRoom);
  ASSERT_TRUE(CaughtUp());
  seconds_ += 31;
  controller_->OnLead();
  ASSERT_TRUE(Soon([&] { return !Told("GangBlocked", "job").empty(); }));
  EXPECT_THAT(Told("GangBlocked", "job"),
              AllOf(HasSubstr("pod job-2"), HasSubstr("node n2"),
                    HasSubstr("Insufficient rdma/hca"), HasSubstr("podFailurePolicy")));
  EXPECT_TRUE(IsThere("job-2"));
  EXPECT_EQ(controller_->Counts().replanned, 0U);
}

TEST_F(BadDays, OnlyForRoomOnItsNodeAPodIsTakenAway) {
  StartLeading();
  for (int i = 0; i < 4; ++i) {
    PutPod({.name = absl::StrCat("set-", i),
            .gang = "g",
            .size = 4,
            .owner = "set",
            .kind = "ReplicaSet"});
  }
  ASSERT_TRUE(Soon([&] { return ReleasedOf("set", 4) == 4; }));
  Unschedulable("set-2",
                "0/8 nodes are available: pod has unbound immediate PersistentVolumeClaims.");
  ASSERT_TRUE(CaughtUp());
  seconds_ += 31;
  controller_->OnLead();
  ASSERT_TRUE(Soon([&] { return !Told("GangBlocked", "set").empty(); }));
  EXPECT_THAT(Told("GangBlocked", "set"), HasSubstr("unbound immediate PersistentVolumeClaims"));
  EXPECT_TRUE(IsThere("set-2"));
}

TEST_F(BadDays, ABrokenWebhookStopsTheGangsItIsAskedAboutAndNoOthers) {
  Deny("a-", BrokenWebhook());
  PutJob("a", 4);
  StartLeading();
  PutJob("b", 4);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("b", 4) == 4; }));
  EXPECT_EQ(ReleasedOf("a", 4), 0);
  ASSERT_TRUE(Soon([&] { return !Told("GangBlocked", "a").empty(); }));
  EXPECT_THAT(Told("GangBlocked", "a"), HasSubstr("failed calling webhook \"x.example\""));
  failing_.Refuse(nullptr);
  EXPECT_TRUE(Soon([&] { return ReleasedOf("a", 4) == 4; }));
}

TEST_F(BadDays, AGangThatIsRefusedForGoodIsToldSoAndKeepsNoRoomFromOthers) {
  Deny("a-", absl::PermissionDeniedError("admission webhook \"x.example\" denied the request: no"));
  PutJob("a", 8);
  StartLeading();
  ASSERT_TRUE(Soon([&] { return !Told("GangBlocked", "a").empty(); }));
  EXPECT_THAT(Told("GangBlocked", "a"), HasSubstr("denied the request: no"));
  PutJob("b", 4);
  EXPECT_TRUE(Soon([&] { return ReleasedOf("b", 4) == 4; }));
  EXPECT_EQ(ReleasedOf("a", 8), 0);
}

TEST_F(BadDays, ADecisionThatCouldNotBeSentIsMadeAnew) {
  Deny("job-", BrokenWebhook());
  PutJob("job", 4);
  StartLeading();
  ASSERT_TRUE(Soon([&] {
    for (const std::string& call : api_.TakeCalls()) {
      if (absl::StartsWith(call, "PATCH /api/v1/namespaces/default/events")) return true;
    }
    return !Told("GangBlocked", "job").empty() || controller_->Counts().placed > 0;
  }));
  for (const char* node : {"n0", "n2"}) {
    const kube::ObjectRef ref = {"v1", "nodes", "", node};
    Json changed = api_.At(ref);
    changed["spec"]["unschedulable"] = true;
    api_.Put(ref, changed);
  }
  ASSERT_TRUE(CaughtUp());
  failing_.Refuse(nullptr);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 4) == 4; }));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(NodeOf(absl::StrCat("job-", i)), absl::StrCat("n", i + 4));
}

TEST_F(BadDays, WhatNobodyAnswersToIsFoundOutAndNoOtherGangIsBegunMeanwhile) {
  failing_.good = 2;
  failing_.lost = 1;
  failing_.Refuse([this](const kube::ApiRequest& request) {
    return failing_.good < 0 && absl::StartsWith(request.path, "/api/v1/pods/")
               ? absl::UnavailableError("no answer")
               : absl::OkStatus();
  });
  PutJob("a", 4);
  PutJob("b", 4);
  StartLeading();
  ASSERT_TRUE(Soon([&] { return ReleasedOf("a", 4) + ReleasedOf("b", 4) == 3; }));
  EXPECT_TRUE(ReleasedOf("a", 4) == 0 || ReleasedOf("b", 4) == 0);
  failing_.good = 1'000'000;
  ASSERT_TRUE(Soon([&] { return ReleasedOf("a", 4) == 4 && ReleasedOf("b", 4) == 4; }));
  std::set<std::string> nodes;
  for (int i = 0; i < 4; ++i) {
    nodes.insert(NodeOf(absl::StrCat("a-", i)));
    nodes.insert(NodeOf(absl::StrCat("b-", i)));
  }
  EXPECT_EQ(nodes.size(), 8U);
}

TEST_F(BadDays, TheRoomOfARunningGangThatLostAPodIsKept) {
  StartLeading();
  PutJob("job", 8);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 8) == 8; }));
  BindJob("job", 8);
  PutJob("next", 1);
  ASSERT_TRUE(CaughtUp());
  Fail("job-2");
  ASSERT_TRUE(CaughtUp());
  EXPECT_EQ(NodeOf("next-0"), "");
  PutPod({.name = "job-2b", .gang = "true", .size = 8, .owner = "job", .index = 2});
  ASSERT_TRUE(Soon([&] { return NodeOf("job-2b") == "n2"; }));
  // When it is not made again there is an end to it.
  Fail("job-3");
  ASSERT_TRUE(CaughtUp());
  EXPECT_EQ(NodeOf("next-0"), "");
  seconds_ += 3600;
  controller_->OnLead();
  EXPECT_TRUE(Soon([&] { return NodeOf("next-0") == "n3"; }));
}

TEST_F(BadDays, APodThatFailedDoesNotGoBackWhereItsLikeIsFree) {
  StartLeading();
  PutJob("job", 3);
  ASSERT_TRUE(Soon([&] { return ReleasedOf("job", 3) == 3; }));
  BindJob("job", 3);
  Fail("job-1");
  ASSERT_TRUE(CaughtUp());
  PutPod({.name = "job-1b", .gang = "true", .size = 3, .owner = "job", .index = 1});
  ASSERT_TRUE(Soon([&] { return !NodeOf("job-1b").empty(); }));
  EXPECT_EQ(NodeOf("job-1b"), "n3");
}

TEST_F(BadDays, PodsThatAreMadeOneAfterTheOtherDoNotWaitForEachOther) {
  StartLeading();
  PutPod(
      {.name = "set-0", .gang = "g", .size = 3, .owner = "set", .index = 0, .kind = "StatefulSet"});
  ASSERT_TRUE(CaughtUp());
  EXPECT_FALSE(api_.At(Pod("set-0"))["spec"]["schedulingGates"].empty());
  seconds_ += 31;
  controller_->OnLead();
  ASSERT_TRUE(Soon([&] { return api_.At(Pod("set-0"))["spec"]["schedulingGates"].empty(); }));
  ASSERT_TRUE(Soon([&] { return !Told("GangOrdered", "set").empty(); }));
  EXPECT_THAT(Told("GangOrdered", "set"), HasSubstr("podManagementPolicy: Parallel"));
}

}  // namespace
}  // namespace railhead::op::gangs
