// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/seats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operator/gangs/testing/small_cluster.h"

namespace railhead::op::gangs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::SmallCluster;

const absl::Time kSeated = absl::UnixEpoch();

// A gang of three that runs on n0, n1 and n2.
SmallCluster Running() {
  SmallCluster cluster;
  for (int i = 0; i < 4; ++i) cluster.AddNode(absl::StrCat("n", i), "s", "l");
  for (int i = 0; i < 3; ++i) {
    cluster.AddPod(
        {.name = absl::StrCat("p", i), .gang = "true", .size = 3, .owner = "j", .index = i});
  }
  cluster.ReleaseAll(cluster.Decide());
  EXPECT_EQ(cluster.Bind(), 0);
  return cluster;
}

std::vector<Seat> Empty(Seats& seats, const SmallCluster& cluster, absl::Time now) {
  seats.Update(GangsOf(cluster.Pods(), {}, {}), now);
  return seats.empty().empty() ? std::vector<Seat>() : seats.empty().begin()->second;
}

TEST(Seats, APodThatIsGoneLeavesItsSeatUntilItIsMadeAgain) {
  SmallCluster cluster = Running();
  Seats seats;
  EXPECT_THAT(Empty(seats, cluster, kSeated), IsEmpty());
  const auto pod = cluster.pods["p1"];
  cluster.pods.erase("p1");
  EXPECT_THAT(Empty(seats, cluster, kSeated), ElementsAre(Seat{1, "n1"}));
  EXPECT_THAT(seats.FailedOn(kSeated), IsEmpty());  // nobody knows that it has failed
  EXPECT_EQ(seats.NextEnd(), kSeated + Seats::kKeep);
  cluster.pods["p1"] = pod;
  EXPECT_THAT(Empty(seats, cluster, kSeated), IsEmpty());
}

TEST(Seats, AFailedPodIsKnownToANewLeaderTooAndGivenUpForGood) {
  SmallCluster cluster = Running();
  cluster.pods["p2"]["status"]["phase"] = "Failed";
  Seats seats;
  EXPECT_THAT(Empty(seats, cluster, kSeated), ElementsAre(Seat{2, "n2"}));
  EXPECT_EQ(seats.FailedOn(kSeated).begin()->second.count("n2"), 1U);
  EXPECT_THAT(Empty(seats, cluster, kSeated + Seats::kKeep), IsEmpty());
  EXPECT_THAT(Empty(seats, cluster, kSeated + Seats::kKeep + absl::Seconds(1)), IsEmpty());
  EXPECT_THAT(seats.FailedOn(kSeated + Seats::kAvoid), IsEmpty());
}

TEST(Seats, WhereAPodFailedIsKnownWhileNoneOfItsGangIsThereAndToItsNextTry) {
  SmallCluster cluster = Running();
  const std::string lineage = GangsOf(cluster.Pods(), {}, {})[0].lineage;
  cluster.pods["p2"]["status"]["phase"] = "Failed";
  Seats seats;
  seats.Update(GangsOf(cluster.Pods(), {}, {}), kSeated);
  cluster.pods.clear();
  seats.Update({}, kSeated + absl::Seconds(1));
  EXPECT_EQ(seats.FailedOn(kSeated + absl::Seconds(1))[lineage].count("n2"), 1U);
  seats.Update({}, kSeated + Seats::kAvoid);
  EXPECT_THAT(seats.FailedOn(kSeated), IsEmpty());  // it is forgotten
}

TEST(Seats, APodThatEndedWellOrAGangThatEndedKeepsNothing) {
  SmallCluster cluster = Running();
  Seats seats;
  EXPECT_THAT(Empty(seats, cluster, kSeated), IsEmpty());
  cluster.pods["p0"]["status"]["phase"] = "Succeeded";
  EXPECT_THAT(Empty(seats, cluster, kSeated), IsEmpty());
  cluster.pods["p1"]["status"]["phase"] = "Failed";
  EXPECT_THAT(Empty(seats, cluster, kSeated), ElementsAre(Seat{1, "n1"}));
  cluster.pods["p2"]["status"]["phase"] = "Failed";
  EXPECT_THAT(Empty(seats, cluster, kSeated), IsEmpty());
}

TEST(Seats, APodThatIsBeingDeletedHoldsItsRoomItself) {
  SmallCluster cluster = Running();
  Seats seats;
  cluster.pods["p0"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_THAT(Empty(seats, cluster, kSeated), IsEmpty());
  cluster.pods.erase("p0");
  EXPECT_THAT(Empty(seats, cluster, kSeated), ElementsAre(Seat{0, "n0"}));
}

}  // namespace
}  // namespace railhead::op::gangs
