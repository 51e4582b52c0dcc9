// SPDX-License-Identifier: Apache-2.0
//
// Jobs whose size changes after they were created. (What a new Job is stamped with:
// mutation_test.cc and gang_gate_test.cc.)
#include "operator/admission/job_stamp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "operator/admission/mutation.h"

namespace railhead::op {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const InjectionConfig kServed = {.environment = {}, .gangs = true};

// An Indexed Job that waits in a queue, as admission has stamped it.
Json QueuedJob(int pods) {
  Json job = Json::parse(R"({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"},
    "spec": {"completionMode": "Indexed", "suspend": true, "template": {
      "metadata": {"labels": {"railhead.io/gang": "true"}},
      "spec": {"subdomain": "ring", "containers": [
        {"name": "main", "resources": {"limits": {"rdma/hca": "1"}}}]}}}})");
  job["spec"]["completions"] = pods;
  job["spec"]["parallelism"] = pods;
  return job.patch(StampJob(job, kServed).patch);
}

Json Resized(Json job, int pods) {
  job["spec"]["completions"] = pods;
  job["spec"]["parallelism"] = pods;
  return job;
}

std::string StampOf(const Json& job, const char* name) {
  return job["spec"]["template"]["metadata"]["annotations"].value(name, "");
}

// As Kueue does it: one update resumes the Job with fewer pods.
TEST(RestampJobTest, AJobThatIsStartedInPartKnowsHowManyItsPodsAre) {
  const Json before = QueuedJob(20);
  ASSERT_EQ(StampOf(before, "railhead.io/world-size"), "20");
  ASSERT_EQ(StampOf(before, "railhead.io/gang-size"), "20");
  Json after = Resized(before, 10);
  after["spec"]["suspend"] = false;
  const Mutation mutation = RestampJob(before, after, kServed);
  EXPECT_THAT(mutation.warnings, IsEmpty());
  after = after.patch(mutation.patch);
  EXPECT_EQ(StampOf(after, "railhead.io/world-size"), "10");
  EXPECT_EQ(StampOf(after, "railhead.io/gang-size"), "10");
  EXPECT_EQ(RestampJob(before, after, kServed).outcome, Outcome::kUnchanged);
}

TEST(RestampJobTest, OnlyTheGangFollowsParallelismAlone) {
  const Json before = QueuedJob(20);
  Json after = before;
  after["spec"]["parallelism"] = 10;
  after = after.patch(RestampJob(before, after, kServed).patch);
  EXPECT_EQ(StampOf(after, "railhead.io/world-size"), "20");
  EXPECT_EQ(StampOf(after, "railhead.io/gang-size"), "10");
}

TEST(RestampJobTest, AStampOfTheUserStays) {
  Json before = QueuedJob(20);
  before["spec"]["template"]["metadata"]["annotations"]["railhead.io/world-size"] = "40";
  const Json after = Resized(before, 10);
  const Json stamped = after.patch(RestampJob(before, after, kServed).patch);
  EXPECT_EQ(StampOf(stamped, "railhead.io/world-size"), "40");
  EXPECT_EQ(StampOf(stamped, "railhead.io/gang-size"), "10");
}

// The API server refuses a template that changes; the update itself must go through.
TEST(RestampJobTest, TheUserOfARunningJobIsToldWhatToDo) {
  Json before = QueuedJob(4);
  before["spec"]["suspend"] = false;
  before["status"]["startTime"] = "2026-11-25T07:00:00Z";
  const Mutation mutation = RestampJob(before, Resized(before, 6), kServed);
  EXPECT_THAT(mutation.patch, IsEmpty());
  EXPECT_THAT(mutation.warnings,
              ElementsAre(HasSubstr("railhead.io/world-size] stays 4 but should be 6"),
                          HasSubstr("railhead.io/gang-size] stays 4 but should be 6")));
  EXPECT_THAT(mutation.warnings, ElementsAre(HasSubstr("spec.suspend"), HasSubstr("spec.suspend")));
  // Suspended, but its pods are not gone yet.
  before["spec"]["suspend"] = true;
  EXPECT_THAT(RestampJob(before, Resized(before, 6), kServed).patch, IsEmpty());
}

TEST(RestampJobTest, WhatIsNoJobIsLeftAlone) {
  for (const char* before : {"null", "7", "{}", R"({"spec": []})", R"({"spec": {"template": 7}})",
                             R"({"spec": {"template": {"metadata": {"annotations": 7}}}})"}) {
    const Json job = QueuedJob(4);
    EXPECT_THAT(RestampJob(Json::parse(before), job, kServed).patch, IsEmpty()) << before;
    EXPECT_THAT(RestampJob(job, Json::parse(before), kServed).patch, IsEmpty()) << before;
  }
}

}  // namespace
}  // namespace railhead::op
