// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/job_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace railhead::op {
namespace {

using ::testing::ElementsAre;
using verdict::PodFacts;

PodFacts OwnedBy(const std::string& kind, const std::string& name, const std::string& gang = "") {
  PodFacts pod;
  pod.space = "team";
  pod.name = name;
  pod.uid = "uid-" + name;
  verdict::PodTerms terms;
  if (!kind.empty()) terms.owner = {"v1", kind, "owner", "uid-owner"};
  terms.gang = gang;
  pod.terms = std::move(terms);
  if (kind == "Job") pod.rank = 0;
  return pod;
}

TEST(JobOfTest, PodsThatWorkTogetherAreOneJobAndOthersAreEachAlone) {
  for (const char* kind : {"Job", "JobSet", "StatefulSet", "PyTorchJob", "MPIJob"}) {
    const JobName a = JobOf(OwnedBy(kind, "a"));
    EXPECT_EQ(a.Key(), JobOf(OwnedBy(kind, "b")).Key()) << kind;
    EXPECT_TRUE(a.together) << kind;
    EXPECT_EQ(a.one_program, std::string(kind) != "StatefulSet") << kind;
    EXPECT_EQ(a.name, "owner");
  }
  for (const char* kind : {"DaemonSet", "ReplicaSet", "Node", "ReplicationController", ""}) {
    const JobName a = JobOf(OwnedBy(kind, "a"));
    EXPECT_NE(a.Key(), JobOf(OwnedBy(kind, "b")).Key()) << kind;
    EXPECT_FALSE(a.together) << kind;
    EXPECT_EQ(a.name, *kind == '\0' ? "a" : "owner");
  }
}

TEST(JobOfTest, PodsOfAJobWithoutAnIndexAreNoRanks) {
  PodFacts a = OwnedBy("Job", "a");
  PodFacts b = OwnedBy("Job", "b");
  a.rank = b.rank = std::nullopt;
  EXPECT_NE(JobOf(a).Key(), JobOf(b).Key());
  EXPECT_FALSE(JobOf(a).together);
  a.terms = b.terms = OwnedBy("Job", "", "gang").terms;  // but for the word of their label
  EXPECT_EQ(JobOf(a).Key(), JobOf(b).Key());
  EXPECT_TRUE(JobOf(a).one_program);
}

TEST(JobOfTest, AGangIsAJobWhereItsOwnerIsNone) {
  PodFacts a = OwnedBy("ReplicaSet", "a", "gang");
  PodFacts b = OwnedBy("", "b", "gang");
  EXPECT_EQ(JobOf(a).Key(), JobOf(b).Key());
  EXPECT_TRUE(JobOf(a).together);
  b.space = "other";
  EXPECT_NE(JobOf(a).Key(), JobOf(b).Key());
  PodFacts c = OwnedBy("Job", "c", "gang");
  EXPECT_EQ(JobOf(c).kind, "Job");
}

TEST(JobOfTest, JobsWhosePodsHaveRanksTogetherAreOne) {
  PodFacts a = OwnedBy("Job", "a");
  PodFacts b = OwnedBy("Job", "b");
  verdict::PodTerms terms = *b.terms;
  terms.owner->name = "other";
  terms.owner->uid = "uid-other";
  b.terms = terms;
  EXPECT_NE(JobOf(a).Key(), JobOf(b).Key());
  terms.replicated_job = "js-w";
  terms.job_set_uid = "uid-set";
  b.terms = terms;
  terms.owner->uid = "uid-owner";
  a.terms = terms;
  EXPECT_EQ(JobOf(a).Key(), JobOf(b).Key());
  EXPECT_EQ(JobOf(a).name, "js-w");
  EXPECT_TRUE(JobOf(a).one_program);
  terms.job_set_uid = "uid-of-another-of-that-name";
  b.terms = terms;
  EXPECT_NE(JobOf(a).Key(), JobOf(b).Key());
}

TEST(JobIndexTest, AJobGrowsWhenAPodIsAddedAndIsGoneWithItsLast) {
  JobIndex index;
  const PodFacts a = OwnedBy("Job", "a");
  const PodFacts b = OwnedBy("Job", "b");
  const std::string key = JobOf(a).Key();
  const absl::Time begin = absl::UnixEpoch();
  index.Add("team/a", a, begin);
  index.Add("team/b", b, begin + absl::Seconds(1));
  index.Add("team/a", a, begin + absl::Seconds(2));  // it was there
  ASSERT_NE(index.Find(key), nullptr);
  EXPECT_EQ(index.Find(key)->grown, begin + absl::Seconds(1));
  EXPECT_THAT(index.Find(key)->pods, ElementsAre("team/a", "team/b"));
  index.Remove("team/a", a);
  EXPECT_THAT(index.Jobs(), ElementsAre(key));
  index.Remove("team/b", b);
  EXPECT_EQ(index.Find(key), nullptr);
}

}  // namespace
}  // namespace railhead::op
