// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/gang_events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kube/json.h"
#include "kube/testing/fake_api.h"
#include "operator/gangs/planner.h"
#include "operator/gangs/testing/small_cluster.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using testing::SmallCluster;

class GangEventsTest : public ::testing::Test {
 protected:
  // One node, and gangs of two pods that have no room there.
  void AddGangs(int count) {
    cluster_.AddNode("n", "s", "l");
    for (int i = 0; i < count; ++i) {
      for (int pod = 0; pod < 2; ++pod) {
        cluster_.AddPod({.name = absl::StrCat("g", i, "-", pod),
                         .gang = "true",
                         .size = 2,
                         .owner = absl::StrCat("g", i),
                         .index = pod});
      }
    }
  }

  // As the controller does.
  void Round() {
    DecideOptions options;
    options.explain = [this](const Gang& gang) { return events_.TakeTurn(gang); };
    std::set<std::string> keys;
    std::vector<std::string> without_room;
    explained_ = 0;
    for (const Decision& decision : cluster_.Decide({}, {}, options)) {
      keys.insert(decision.gang.key);
      if (decision.state != Decision::State::kWaiting) continue;
      without_room.push_back(decision.gang.key);
      if (decision.message.empty()) continue;
      ++explained_;
      events_.HasNoRoom(decision.gang, decision.message);
    }
    while (events_.queue().Step() == absl::ZeroDuration()) {
    }
    const absl::Time next = events_.EndRound(keys, without_room);
    if (advance_) now_ = std::max(now_, next);
  }

  std::map<std::string, int> Told() const {
    std::map<std::string, int> told;
    for (const kube::Json& event : api_.In("/api/v1/namespaces/train/events")) {
      if (event["reason"] == "GangWaiting") ++told[event["involvedObject"]["name"]];
    }
    return told;
  }

  SmallCluster cluster_;
  kube::testing::FakeApi api_;
  absl::Time now_ = absl::UnixEpoch();
  bool advance_ = true;
  // The wall clock is another one.
  GangEvents events_{&api_, "me", [this] { return now_; },
                     [this] { return now_ + absl::Hours(1); }};
  size_t explained_ = 0;
};

TEST_F(GangEventsTest, EveryWaitingGangIsToldWhyAFewInEachRound) {
  AddGangs(150);
  size_t told = 0;
  while (told < 150) {
    Round();
    EXPECT_EQ(explained_, std::min(Turns::kInARound, 150 - told));
    ASSERT_GT(Told().size(), told);
    told = Told().size();
  }
  // The first one is next, and not before all have had their turn.
  EXPECT_EQ(now_, absl::UnixEpoch() + 150 * Turns::kForEach);
}

TEST_F(GangEventsTest, WhatIsInTheWayIsToldAgainOnlyIfItIsSomethingElse) {
  AddGangs(1);
  Round();
  const absl::Time first = now_;
  EXPECT_EQ(first, absl::UnixEpoch() + Turns::kAtSoonest);
  for (int round = 0; round < 3; ++round) Round();
  EXPECT_EQ(api_.In("/api/v1/namespaces/train/events").size(), 1U);
  cluster_.nodes["n"]["spec"]["unschedulable"] = true;
  for (int round = 0; round < 3; ++round) Round();
  EXPECT_EQ(api_.In("/api/v1/namespaces/train/events").size(), 2U);
}

// The API server deletes Events after an hour.
TEST_F(GangEventsTest, AReasonThatLastsIsRepeated) {
  advance_ = false;
  AddGangs(1);
  const PodValue pod = cluster_.Pods().front();
  const Notice blocked = {Notice::Kind::kBlocked, GangKeyOf(*pod), pod, "another gate"};
  const auto counts = [this] {
    std::map<std::string, int> by_reason;
    for (const kube::Json& event : api_.In("/api/v1/namespaces/train/events")) {
      by_reason[event["reason"]] = event["count"];
    }
    return by_reason;
  };
  const std::map<std::string, int> once = {{"GangWaiting", 1}, {"GangBlocked", 1}};
  const std::map<std::string, int> twice = {{"GangWaiting", 2}, {"GangBlocked", 2}};
  for (int minute = 0; minute < 30; ++minute) {
    events_.Notify(blocked);
    Round();
    EXPECT_EQ(counts(), once) << minute;
    now_ += absl::Minutes(1);
  }
  now_ += absl::Minutes(31);
  events_.Notify(blocked);
  Round();
  EXPECT_EQ(counts(), twice);
  EXPECT_EQ(api_.In("/api/v1/namespaces/train/events").size(), 2U);
  // Not for ever the time of the first one.
  now_ += absl::Minutes(29);
  events_.Notify(blocked);
  Round();
  EXPECT_EQ(counts(), twice);
}

TEST_F(GangEventsTest, WhatCouldNotBeToldIsToldAMinuteLater) {
  AddGangs(1);
  api_.SetOutage(absl::PermissionDeniedError("403"));
  Round();
  Round();
  api_.SetOutage(absl::OkStatus());
  EXPECT_TRUE(Told().empty());
  for (int round = 0; round < 3; ++round) Round();
  EXPECT_EQ(Told().size(), 1U);
}

TEST_F(GangEventsTest, WhereNodesAreChosenByOthersItIsToldOnceAMinute) {
  advance_ = false;
  AddGangs(6);
  for (int i = 0; i < 6; ++i) {
    for (int pod = 0; pod < 2; ++pod) {
      cluster_.pods[absl::StrCat("g", i, "-", pod)]["spec"]["nodeSelector"][kHostname] = "n";
    }
  }
  cluster_.AddNode("m", "s", "l");
  cluster_.AddPod({.name = "big-0", .gang = "big", .size = 1, .hcas = 16});
  Round();
  EXPECT_EQ(Told().size(), 7U);
  const auto events = [this] { return api_.In("/api/v1/namespaces/train/events").size(); };
  ASSERT_EQ(events(), 7U);
  // Another pod takes a part of the node, and what is left of it is told of later.
  cluster_.AddPod({.name = "other", .hcas = 4});
  cluster_.pods["other"]["spec"]["nodeName"] = "n";
  for (int round = 0; round < 3; ++round) Round();
  EXPECT_EQ(events(), 7U);
  now_ += absl::Minutes(2);
  for (int round = 0; round < 3; ++round) Round();
  EXPECT_GT(events(), 7U);
}

}  // namespace
}  // namespace railhead::op::gangs
