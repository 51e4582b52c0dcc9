// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "jobs/testing/job_set_pod.h"
#include "operator/cluster/stored_pod.h"
#include "operator/gangs/gang.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using kube::Json;
using ::testing::HasSubstr;
using ::testing::Not;

Json GatedPod(int job, int index, int size = 8) {
  Json pod = jobs::JobSetPod(job, index, size);
  pod["spec"]["schedulingGates"] = Json::array({{{"name", kGate}}});
  return pod;
}

TEST(GangOfJobTest, PodsOfSeveralJobsAreOneGangInTheOrderOfAll) {
  std::vector<PodValue> pods;
  for (int job = 1; job >= 0; --job) {
    for (int index = 0; index < 4; ++index) {
      pods.push_back(std::make_shared<StoredPod>(*ReadStoredPod(GatedPod(job, index))));
    }
  }
  const std::vector<Gang> gangs = GangsOf(pods, {}, {});
  ASSERT_EQ(gangs.size(), 1U);
  EXPECT_EQ(gangs[0].name, "js");
  EXPECT_EQ(WhyNotComplete(gangs[0]), "");
  EXPECT_EQ(gangs[0].gated[4]->name, "js-workers-1-0");
  EXPECT_EQ(RanksOf(gangs[0])[7], 7);
}

TEST(GangOfJobTest, AnotherJobSetOfTheNameAndAnotherLabelAreOtherGangs) {
  std::vector<PodValue> pods;
  for (const char* change :
       {R"({})", R"({"jobset.sigs.k8s.io/jobset-uid": "5"})", R"({"railhead.io/gang": "all"})",
        R"({"jobset.sigs.k8s.io/replicatedjob-name": "eval"})"}) {
    Json pod = GatedPod(0, 0);
    pod["metadata"]["labels"].merge_patch(Json::parse(change));
    pods.push_back(std::make_shared<StoredPod>(*ReadStoredPod(pod)));
  }
  EXPECT_EQ(GangsOf(pods, {}, {}).size(), 4U);
}

TEST(GangOfJobTest, AJobSetThatStartsAnewWaitsForAllPodsOfThatTry) {
  std::vector<PodValue> pods;
  const auto add = [&pods](Json pod, const char* attempt) {
    pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] = attempt;
    pods.push_back(std::make_shared<StoredPod>(*ReadStoredPod(pod)));
  };
  // The second Job has not been deleted yet: one of its pods runs, and one has succeeded.
  Json runs = GatedPod(1, 0);
  runs["spec"] = {{"nodeName", "n"}};
  runs["metadata"]["annotations"][kPlacement] = "p";
  add(runs, "0");
  Json ended = GatedPod(1, 1);
  ended["status"]["phase"] = "Succeeded";
  add(ended, "0");
  for (int index = 0; index < 4; ++index) add(GatedPod(0, index), "1");
  std::vector<Gang> gangs = GangsOf(pods, {}, {});
  ASSERT_EQ(gangs.size(), 2U);
  EXPECT_EQ(gangs[0].lineage, gangs[1].lineage);
  EXPECT_TRUE(gangs[0].begun());
  EXPECT_FALSE(gangs[1].begun());
  EXPECT_THAT(WhyNotComplete(gangs[1]), HasSubstr("4 of 8 pods exist"));
  for (int index = 0; index < 4; ++index) add(GatedPod(1, index), "1");
  EXPECT_EQ(WhyNotComplete(GangsOf(pods, {}, {})[1]), "");
}

TEST(GangOfJobTest, AGangOfReplicatedJobsThatWaitForEachOtherIsToldSo) {
  Json pod = GatedPod(0, 0);
  const auto why = [&pod] {
    return WhyNotComplete(GangsOf({std::make_shared<StoredPod>(*ReadStoredPod(pod))}, {}, {})[0]);
  };
  EXPECT_THAT(why(), Not(HasSubstr("dependsOn")));
  pod["metadata"]["labels"][kGangLabel] = "all";
  EXPECT_THAT(why(), HasSubstr("startupPolicy, dependsOn); in that case set the label"));
}

TEST(GangOfJobTest, GroupsOfAGangWithANameAreReplacedOneAfterTheOther) {
  std::vector<PodValue> pods;
  for (const char* revision : {"a", "b"}) {
    Json pod = GatedPod(0, 0);
    pod["metadata"]["labels"] = {{kGangLabel, "all"},
                                 {"leaderworkerset.sigs.k8s.io/name", "serve"},
                                 {"leaderworkerset.sigs.k8s.io/group-index", revision},
                                 {"leaderworkerset.sigs.k8s.io/template-revision-hash", revision}};
    pods.push_back(std::make_shared<StoredPod>(*ReadStoredPod(pod)));
  }
  EXPECT_EQ(GangsOf(pods, {}, {}).size(), 1U);
}

// Of a group of three.
Json GroupPod(const char* group, int index) {
  const std::string set = "leaderworkerset.sigs.k8s.io/";
  return {{"metadata",
           {{"name", absl::StrCat("serve-", group, "-", index)},
            {"namespace", "train"},
            {"uid", absl::StrCat(group, "-", index)},
            {"labels",
             {{set + "name", "serve"},
              {set + "group-index", group},
              {set + "worker-index", absl::StrCat(index)},
              {set + "template-revision-hash", "a"}}},
            {"annotations", {{set + "size", "3"}}}}},
          {"spec", Json::object()}};
}

TEST(GangOfJobTest, ALeaderThatAsksForNoRdmaIsThereNevertheless) {
  std::vector<PodValue> pods;
  const auto add = [&pods](const Json& pod) {
    if (auto stored = ReadStoredPod(pod)) {
      pods.push_back(std::make_shared<StoredPod>(*std::move(stored)));
    }
  };
  for (const int index : {1, 2}) {
    Json worker = GroupPod("0", index);
    worker["metadata"]["labels"][kGangLabel] = "true";
    worker["metadata"]["annotations"][kGangSize] = "3";
    worker["spec"]["schedulingGates"] = {{{"name", kGate}}};
    add(worker);
  }
  add(GroupPod("1", 0));  // of another group
  Json gone = GroupPod("0", 0);
  gone["status"]["phase"] = "Failed";
  add(gone);
  ASSERT_EQ(GangsOf(pods, {}, {}).size(), 1U);
  EXPECT_THAT(WhyNotComplete(GangsOf(pods, {}, {})[0]), HasSubstr("2 of 3 pods exist"));
  add(GroupPod("0", 0));
  EXPECT_EQ(WhyNotComplete(GangsOf(pods, {}, {})[0]), "");
}

}  // namespace
}  // namespace railhead::op::gangs
