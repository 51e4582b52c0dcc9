// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operator/gangs/testing/small_cluster.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::PodSpec;
using testing::SmallCluster;

std::vector<Gang> Gangs(const SmallCluster& cluster) { return GangsOf(cluster.Pods(), {}, {}); }

TEST(Gang, OneNameInTwoJobsAndTwoNamespacesIsFourGangs) {
  SmallCluster cluster;
  for (const char* name : {"a", "b", "c", "d"}) {
    cluster.AddPod({.name = name, .gang = "g", .size = 1, .owner = *name < 'c' ? "j1" : "j2"});
  }
  for (const char* name : {"b", "d"}) {
    cluster.pods[name]["metadata"]["namespace"] = "other";
  }
  EXPECT_EQ(Gangs(cluster).size(), 4U);
}

TEST(Gang, PodsWithoutAnOwnerAreAGangByItsName) {
  SmallCluster cluster;
  for (int i = 0; i < 12; ++i) {
    cluster.AddPod({.name = absl::StrCat("worker-", i), .gang = "g", .size = 12});
  }
  const std::vector<Gang> gangs = Gangs(cluster);
  ASSERT_EQ(gangs.size(), 1U);
  EXPECT_EQ(gangs[0].name, "g");
  EXPECT_EQ(gangs[0].gated[2]->name, "worker-2");
  EXPECT_EQ(gangs[0].gated[10]->name, "worker-10");
  EXPECT_EQ(WhyNotComplete(gangs[0]), "");
}

TEST(Gang, APodThatComesBackTakesTheRankThatIsFree) {
  SmallCluster cluster;
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("w-", std::string(1, "xbqz"[i]));
    cluster.AddPod({.name = name, .gang = "g", .size = 4});
    if (i == 1 || i == 2) continue;
    cluster.pods[name]["spec"]["schedulingGates"].clear();
    cluster.pods[name]["metadata"]["annotations"][kPlacement] = "p";
    cluster.pods[name]["metadata"]["annotations"][kRank] = absl::StrCat(i);
  }
  const std::vector<Gang> gangs = Gangs(cluster);
  EXPECT_TRUE(gangs[0].begun());
  EXPECT_THAT(RanksOf(gangs[0]), ElementsAre(1, 2));
}

TEST(Gang, APodThatComesBackDoesNotTakeTheRankOfOneThatHasSucceeded) {
  SmallCluster cluster;
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("w-", i);
    cluster.AddPod({.name = name, .gang = "g", .size = 4});
    if (i == 2) continue;
    cluster.pods[name]["spec"]["schedulingGates"].clear();
    cluster.pods[name]["metadata"]["annotations"][kPlacement] = "p";
    cluster.pods[name]["metadata"]["annotations"][kRank] = absl::StrCat(i);
  }
  cluster.pods["w-0"]["status"]["phase"] = "Succeeded";
  EXPECT_THAT(RanksOf(Gangs(cluster)[0]), ElementsAre(2));
  // All others have ranks: of a Job with more completions than pods at once, the next goes on
  // there.
  cluster.pods["w-3"]["status"]["phase"] = "Succeeded";
  cluster.AddPod({.name = "w-4", .gang = "g", .size = 4});
  cluster.AddPod({.name = "w-5", .gang = "g", .size = 4});
  EXPECT_THAT(RanksOf(Gangs(cluster)[0]), ElementsAre(2, 0, 3));
}

TEST(Gang, APodThatIsBeingDeletedIsNoneOfIt) {
  SmallCluster cluster;
  cluster.AddPod({.name = "a", .gang = "g", .size = 2});
  cluster.AddPod({.name = "b", .gang = "g", .size = 2});
  cluster.pods["b"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_THAT(WhyNotComplete(Gangs(cluster)[0]), HasSubstr("1 of 2 pods exist"));
}

TEST(Gang, PodsThatDisagreeAboutTheSizeWait) {
  SmallCluster cluster;
  cluster.AddPod({.name = "a", .gang = "g", .size = 2});
  cluster.AddPod({.name = "b", .gang = "g", .size = 3});
  EXPECT_THAT(
      WhyNotComplete(Gangs(cluster)[0]),
      HasSubstr("metadata.annotations[railhead.io/gang-size] is 2 of pod a and 3 of pod b"));
}

TEST(Gang, WhatItAsksForIsWhatItsPodsSay) {
  SmallCluster cluster;
  cluster.AddPod({.name = "a", .gang = "g", .size = 1, .hcas = 4, .require_level = "leaf"});
  cluster.pods["a"]["metadata"]["annotations"][kPattern] = "alltoall";
  const placement::PlacementRequest request = RequestOf(Gangs(cluster)[0], RdmaResources());
  EXPECT_EQ(request.pods, 1);
  EXPECT_EQ(request.gpus_per_pod, 4);
  EXPECT_EQ(request.hcas_per_pod, 4);
  EXPECT_EQ(request.require_level, "leaf");
  EXPECT_EQ(request.pattern, placement::Pattern::kAllToAll);
}

}  // namespace
}  // namespace railhead::op::gangs
