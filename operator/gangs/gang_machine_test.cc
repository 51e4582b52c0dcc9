// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/gang_machine.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "operator/gangs/testing/small_cluster.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using testing::SmallCluster;

class GangMachineTest : public ::testing::Test {
 protected:
  GangMachineTest() {
    for (int i = 0; i < 4; ++i) cluster_.AddNode(absl::StrCat("n", i), "s", "l");
    // A node that is not free.
    cluster_.AddPod({.name = "other"});
    cluster_.pods["other"]["spec"]["nodeName"] = "n0";
  }

  // A gang of as many pods as there are nodes, in a namespace of its own.
  void AddGang(const std::string& space, int priority = 0) {
    for (int i = 0; i < 4; ++i) {
      const std::string name = absl::StrCat("of-", space, "-", i);
      cluster_.AddPod({.name = name,
                       .gang = "true",
                       .size = 4,
                       .owner = absl::StrCat("of-", space),
                       .index = i,
                       .priority = priority,
                       .second = 1});
      cluster_.pods[name]["metadata"]["namespace"] = space;
    }
  }
  void Remove(const std::string& space) {
    for (int i = 0; i < 4; ++i) cluster_.pods.erase(absl::StrCat("of-", space, "-", i));
  }

  // The namespace of the gang for which nodes are kept free at that second.
  std::string OwnerAt(int second) {
    tree_ = BuildTree(cluster_.Nodes());
    ClusterRoom room(&tree_);
    std::string owner;
    for (const Decision& decision : machine_.Next(cluster_.Pods(), room, At(second)).decisions) {
      if (decision.reserves) absl::StrAppend(&owner, decision.gang.space);
    }
    return owner;
  }
  static absl::Time At(int second) {
    return absl::FromCivil(absl::CivilSecond(2026, 1, 1, 0, 0, second), absl::UTCTimeZone());
  }

  SmallCluster cluster_;
  NodeTree tree_;
  GangMachine machine_{{.reserve_after = absl::Minutes(10), .explain = nullptr}};
};

TEST_F(GangMachineTest, AReservationStaysWithItsOwnerWhoeverElseWaits) {
  AddGang("m");
  EXPECT_EQ(OwnerAt(700), "m");
  int second = 700;
  for (const char* space : {"a", "z", "b", "y", "c"}) {
    AddGang(space, 1);  // before it in the queue
    EXPECT_EQ(OwnerAt(++second), "m") << space;
  }
  for (const char* space : {"b", "a", "y"}) {
    Remove(space);
    EXPECT_EQ(OwnerAt(++second), "m") << space;
  }
  // It goes, and the next one keeps it.
  Remove("m");
  const std::string next = OwnerAt(++second);
  EXPECT_TRUE(next == "c" || next == "z") << next;
  AddGang("0");
  AddGang("n");
  EXPECT_EQ(OwnerAt(++second), next);
  // There is an end to each, and then another one.
  EXPECT_EQ(OwnerAt(3600), "");
  EXPECT_NE(OwnerAt(7200), "");
}

TEST_F(GangMachineTest, AReservationEndsWhenItsOwnerCannotBePlacedAnyMore) {
  AddGang("m");
  EXPECT_EQ(OwnerAt(700), "m");
  AddGang("a");
  EXPECT_EQ(OwnerAt(701), "m");
  // Only nodes with this label will do, and there is none.
  for (int i = 0; i < 4; ++i) {
    cluster_.pods[absl::StrCat("of-m-", i)]["spec"]["nodeSelector"]["zone"] = "none";
  }
  EXPECT_EQ(OwnerAt(702), "a");
}

TEST_F(GangMachineTest, AGateThatIsRemovedIsNotRemovedAgainUntilTheWatchShowsIt) {
  cluster_.AddPod(
      {.name = "set-0", .gang = "g", .size = 3, .owner = "set", .index = 0, .kind = "StatefulSet"});
  tree_ = BuildTree(cluster_.Nodes());
  ClusterRoom room(&tree_);
  EXPECT_TRUE(machine_.Next(cluster_.Pods(), room, At(0)).works.empty());
  const std::vector<PodValue> pods = cluster_.Pods();
  const GangMachine::Step step = machine_.Next(pods, room, At(31));
  ASSERT_EQ(step.works.size(), 1U);
  ASSERT_EQ(step.works[0].actions[0].kind, Action::Kind::kUngate);
  machine_.Happened(step.works[0], {{Result::Outcome::kDone, ""}}, At(31));
  const GangMachine::Step next = machine_.Next(pods, room, At(32));
  EXPECT_TRUE(next.works.empty());
  EXPECT_TRUE(next.notices.empty());
}

TEST_F(GangMachineTest, AgesAreByTheClockThatStampsObjectsAndPausesAreNot) {
  AddGang("m");
  for (auto& [name, pod] : cluster_.pods) {
    if (name == "other") continue;
    pod["metadata"]["annotations"][kTimeout] = "1h";
    pod["metadata"]["annotations"][kTimeoutPolicy] = "fail";
  }
  tree_ = BuildTree(cluster_.Nodes());
  const auto look = [this](absl::Time now, absl::Duration stamps_ahead) {
    ClusterRoom room(&tree_);
    return machine_.Next(cluster_.Pods(), room, now, stamps_ahead);
  };
  // This machine's clock is a day ahead, and a day behind.
  const GangMachine::Step early = look(At(60) + absl::Hours(24), -absl::Hours(24));
  EXPECT_TRUE(early.works.empty());
  EXPECT_EQ(early.look_again, At(60) + absl::Hours(24) + GangMachine::kLookAgain);
  EXPECT_EQ(look(At(3602) - absl::Hours(24), absl::Hours(24)).works.size(), 1U);
}

}  // namespace
}  // namespace railhead::op::gangs
