// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/refusals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/gangs/testing/small_cluster.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::SmallCluster;

const absl::Time kStart = absl::UnixEpoch();

// A pod that was released, and that the scheduler refuses.
SmallCluster Refused() {
  SmallCluster cluster;
  cluster.AddPod({.name = "p", .gang = "g", .size = 1});
  kube::Json& pod = cluster.pods["p"];
  pod["spec"]["schedulingGates"].clear();
  pod["metadata"]["annotations"][kPlacement] = "x";
  pod["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  return cluster;
}

TEST(Refusals, APodIsDueAfterItHasBeenRefusedForAWhileWithoutABreak) {
  SmallCluster cluster = Refused();
  Refusals refusals;
  EXPECT_THAT(refusals.Due(cluster.Pods(), kStart), IsEmpty());
  EXPECT_THAT(refusals.Due(cluster.Pods(), kStart + absl::Seconds(29)), IsEmpty());
  EXPECT_THAT(refusals.Due(cluster.Pods(), kStart + Refusals::kPatience), SizeIs(1));
  cluster.pods["p"]["status"]["conditions"].clear();
  EXPECT_THAT(refusals.Due(cluster.Pods(), kStart + absl::Minutes(1)), IsEmpty());
  cluster = Refused();
  EXPECT_THAT(refusals.Due(cluster.Pods(), kStart + absl::Minutes(2)), IsEmpty());
}

TEST(Refusals, PodsThatHaveANodeOrOfOthersOrGatedAreNeverDue) {
  for (const char* what : {"bound", "not ours", "leaving"}) {
    SmallCluster cluster = Refused();
    kube::Json& pod = cluster.pods["p"];
    if (what[0] == 'b') pod["spec"]["nodeName"] = "n";
    if (what[0] == 'n') pod["metadata"]["annotations"].erase(kPlacement);
    if (what[0] == 'l') pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    Refusals refusals;
    EXPECT_THAT(refusals.Due(cluster.Pods(), kStart), IsEmpty()) << what;
    EXPECT_THAT(refusals.Due(cluster.Pods(), kStart + absl::Hours(1)), IsEmpty()) << what;
  }
}

TEST(Refusals, ANodeIsAvoidedForSomeTimeByThatGangAlone) {
  Refusals refusals;
  refusals.Avoid("g", "n", kStart);
  EXPECT_EQ(refusals.Nodes(kStart), (RefusedNodes{{"g", {"n"}}}));
  EXPECT_THAT(refusals.Nodes(kStart + Refusals::kAvoid), IsEmpty());
}

}  // namespace
}  // namespace railhead::op::gangs
