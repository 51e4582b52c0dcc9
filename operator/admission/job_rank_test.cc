// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/job_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "operator/admission/mutation.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

JobRank RankOf(const Json& pod) { return JobRankOf(pod, ReadAnnotations(pod).value()); }

// A pod as JobSet's and the Job's controllers make it, of `jobs` Jobs with `pods` pods each.
Json JobSetPod(int jobs, int pods, int job, int index) {
  Json pod = Json::parse(R"({"metadata": {"labels": {
      "jobset.sigs.k8s.io/jobset-name": "train",
      "jobset.sigs.k8s.io/replicatedjob-name": "slice"}},
    "spec": {"subdomain": "train", "containers": [
      {"name": "main", "resources": {"limits": {"rdma/hca": "1"}}}]}})");
  Json& labels = pod["metadata"]["labels"];
  labels["jobset.sigs.k8s.io/replicatedjob-replicas"] = std::to_string(jobs);
  labels["jobset.sigs.k8s.io/job-index"] = std::to_string(job);
  labels["batch.kubernetes.io/job-name"] = "train-slice-" + std::to_string(job);
  // The template's stamp, by the admission of its Job.
  Json owner = {{"metadata", {{"labels", labels}}},
                {"spec",
                 {{"completionMode", "Indexed"},
                  {"completions", pods},
                  {"parallelism", pods},
                  {"template", {{"spec", pod["spec"]}}}}}};
  owner = owner.patch(StampJob(owner, InjectionConfig()).patch);
  pod["metadata"]["annotations"] = owner["spec"]["template"]["metadata"]["annotations"];
  pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] =
      std::to_string(index);
  return pod;
}

TEST(JobRankTest, PodsOfAReplicatedJobAreOneJob) {
  for (const int jobs : {1, 2, 3, 7}) {
    for (const int pods : {1, 2, 5}) {
      std::set<int> ranks;
      std::set<std::string> masters;
      std::set<std::string> names;
      for (int job = 0; job < jobs; ++job) {
        for (int index = 0; index < pods; ++index) {
          const JobRank rank = RankOf(JobSetPod(jobs, pods, job, index));
          EXPECT_THAT(rank.trouble, IsEmpty());
          ASSERT_TRUE(rank.rank.has_value());
          ranks.insert(*rank.rank);
          EXPECT_EQ(rank.world, jobs * pods);
          masters.insert(rank.master);
          names.insert(rank.job);
          EXPECT_EQ(*rank.rank == 0, job == 0 && index == 0);
        }
      }
      EXPECT_EQ(ranks.size(), static_cast<size_t>(jobs * pods));
      EXPECT_EQ(*ranks.rbegin(), jobs * pods - 1);
      EXPECT_EQ(masters, std::set<std::string>{"train-slice-0-0.train"});
      EXPECT_EQ(names.size(), 1U);
    }
  }
}

TEST(JobRankTest, EachJobOfAReplicatedJobAloneWhereThePodSaysSo) {
  Json pod = JobSetPod(3, 4, 2, 1);
  pod["metadata"]["annotations"]["railhead.io/rank-group"] = "job";
  pod["metadata"]["annotations"]["railhead.io/world-size"] = "4";
  const JobRank rank = RankOf(pod);
  EXPECT_EQ(rank.rank, 1);
  EXPECT_EQ(rank.world, 4);
  EXPECT_EQ(rank.master, "train-slice-2-0.train");
  EXPECT_EQ(rank.job, "train-slice-2");
  pod["metadata"]["annotations"]["railhead.io/rank-group"] = "slices";
  pod["metadata"]["annotations"]["railhead.io/world-size"] = "12";
  EXPECT_THAT(RankOf(pod).trouble, HasSubstr("'slices' must be replicatedjob or job"));
}

TEST(JobRankTest, ContradictionsGiveNoRank) {
  for (const char* index : {"", "x", "-1", "3", "99999999999"}) {
    Json pod = JobSetPod(3, 4, 2, 1);
    pod["metadata"]["labels"]["jobset.sigs.k8s.io/job-index"] = index;
    const JobRank rank = RankOf(pod);
    EXPECT_FALSE(rank.rank.has_value()) << index;
    EXPECT_THAT(rank.trouble, HasSubstr("jobset.sigs.k8s.io/job-index")) << index;
  }
  for (const char* world : {"", "0", "2", "13", "x"}) {
    Json pod = JobSetPod(3, 4, 2, 1);
    pod["metadata"]["annotations"]["railhead.io/world-size"] = world;
    EXPECT_FALSE(RankOf(pod).rank.has_value()) << world;
  }
}

TEST(JobRankTest, TheLeaderOfAGroupIsItsFirstRank) {
  Json pod = Json::parse(R"({"metadata": {
      "labels": {"leaderworkerset.sigs.k8s.io/name": "serve",
                 "leaderworkerset.sigs.k8s.io/group-index": "3",
                 "leaderworkerset.sigs.k8s.io/worker-index": "2"},
      "annotations": {"leaderworkerset.sigs.k8s.io/size": "4"}},
    "spec": {"subdomain": "serve", "containers": []}})");
  JobRank rank = RankOf(pod);
  EXPECT_EQ(rank.rank, 2);
  EXPECT_EQ(rank.world, 4);
  EXPECT_EQ(rank.master, "serve-3.serve");
  EXPECT_EQ(rank.job, "serve-3");
  pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/worker-index"] = "4";
  EXPECT_FALSE(RankOf(pod).world.has_value());
}

TEST(JobRankTest, NothingIsInventedForOthers) {
  const Json pod = Json::parse(R"({"metadata": {"ownerReferences": [
      {"kind": "ReplicaSet", "name": "web"}]}, "spec": {"subdomain": "s"}})");
  const JobRank rank = RankOf(pod);
  EXPECT_FALSE(rank.rank.has_value());
  EXPECT_FALSE(rank.world.has_value());
  EXPECT_THAT(rank.job + rank.master + rank.trouble, IsEmpty());
}

// torchrun's WORLD_SIZE counts GPUs, our RANK pods.
TEST(JobRankTest, AContainerThatCountsItsRanksItselfGetsNoneOfOurs) {
  Json pod = JobSetPod(1, 2, 0, 1);
  const auto names = [&pod](const Mutation& mutation) {
    std::vector<std::string> found;
    const Json after = pod.patch(mutation.patch);
    for (const Json& entry : after["spec"]["containers"][0]["env"]) {
      found.push_back(entry["name"]);
    }
    return found;
  };
  const auto admit = [&pod] { return MutatePod(pod, InjectionConfig(), ProfileSet(), "team"); };
  EXPECT_THAT(names(admit()), Contains("RANK"));
  pod["spec"]["containers"][0]["env"] = {{{"name", "WORLD_SIZE"}, {"value", "16"}}};
  EXPECT_THAT(names(admit()), Not(Contains("RANK")));
  EXPECT_THAT(admit().warnings, Contains(HasSubstr("main gets no RANK: it sets WORLD_SIZE")));
  const Json once = pod.patch(admit().patch);
  EXPECT_THAT(MutatePod(once, InjectionConfig(), ProfileSet(), "team").patch, IsEmpty());
  // The same number: there is nothing to contradict.
  pod["spec"]["containers"][0]["env"][0]["value"] = "2";
  EXPECT_THAT(names(admit()), Contains("RANK"));
  EXPECT_THAT(admit().warnings, IsEmpty());
}

}  // namespace
}  // namespace railhead::op
