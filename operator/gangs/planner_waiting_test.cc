// SPDX-License-Identifier: Apache-2.0
//
// Gangs that wait: nodes that are kept free for them, turns of namespaces, levels that are
// waited for, and the end of a wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "operator/gangs/jobs_for_test.h"
#include "operator/gangs/planner.h"
#include "operator/gangs/testing/small_cluster.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::SmallCluster;
using State = Decision::State;

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
  // Nodes that it does not need go to others: these two, of the ten that will be free.
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
  // A pod without devices is assumed to stay: there is one on each node.
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

TEST(Planner, OnlyWhoAsksIsToldWhyAGangWaits) {
  SmallCluster cluster = TwoSpines();
  AddJob(cluster, "job", 17);
  DecideOptions options;
  options.explain = [](const Gang&) { return false; };
  const Decision decision = cluster.Decide({}, {}, options)[0];
  EXPECT_EQ(decision.state, State::kWaiting);
  EXPECT_EQ(decision.message, "");
}

}  // namespace
}  // namespace railhead::op::gangs
