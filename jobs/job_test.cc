// SPDX-License-Identifier: Apache-2.0
#include "jobs/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "jobs/labels.h"
#include "jobs/testing/job_set_pod.h"

namespace railhead::jobs {
namespace {

using kube::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;

Json KubeflowPod(const char* controller, const char* env) {
  return {{"metadata",
           {{"labels",
             {{"training.kubeflow.org/job-name", "bert"},
              {"training.kubeflow.org/operator-name", controller},
              {"training.kubeflow.org/replica-type", "worker"},
              {"training.kubeflow.org/replica-index", "2"}}}}},
          {"spec", {{"containers", {{{"name", "c"}, {"env", Json::parse(env)}}}}}}};
}

TEST(JobTest, AllJobsOfAReplicatedJobAreOne) {
  const std::optional<Job> workload = JobOf(JobSetPod(1, 3));
  ASSERT_TRUE(workload.has_value());
  EXPECT_EQ(workload->kind->name, "JobSet");
  EXPECT_EQ(workload->name, "js");
  EXPECT_EQ(workload->part, "JobSet/js/1234/workers");
  EXPECT_EQ(workload->size, 8);
  EXPECT_EQ(workload->index, 7);
  EXPECT_EQ(JobOf(JobSetPod(0, 3))->part, workload->part);
}

TEST(JobTest, AGroupOfALeaderWorkerSet) {
  Json pod = Json::parse(R"({"metadata": {
    "labels": {"leaderworkerset.sigs.k8s.io/name": "serve",
               "leaderworkerset.sigs.k8s.io/group-index": "3",
               "leaderworkerset.sigs.k8s.io/worker-index": "0"},
    "annotations": {"leaderworkerset.sigs.k8s.io/size": "4"}}})");
  const std::optional<Job> workload = JobOf(pod);
  ASSERT_TRUE(workload.has_value());
  EXPECT_EQ(workload->kind->name, "LeaderWorkerSet");
  EXPECT_EQ(workload->part, "LeaderWorkerSet/serve/3");
  EXPECT_EQ(workload->size, 4);
  EXPECT_EQ(workload->index, 0);
  pod["metadata"]["labels"].erase("leaderworkerset.sigs.k8s.io/group-index");
  EXPECT_FALSE(JobOf(pod).has_value());
}

TEST(JobTest, WhatKubeflowTellsContainers) {
  const auto of = [](const char* controller, const char* env) {
    return *JobOf(KubeflowPod(controller, env));
  };
  Job workload = of("pytorchjob-controller", R"([
    {"name": "WORLD_SIZE", "value": "32"}, {"name": "PET_NPROC_PER_NODE", "value": "8"},
    {"name": "RANK", "value": "3"}])");
  EXPECT_EQ(workload.kind->name, "PyTorchJob");
  EXPECT_EQ(workload.part, "PyTorchJob/bert");
  EXPECT_EQ(workload.size, 4);
  EXPECT_EQ(workload.index, 3);
  EXPECT_EQ(of("pytorchjob-controller", R"([{"name": "WORLD_SIZE", "value": "4"}])").size, 4);
  EXPECT_EQ(of("pytorchjob-controller", R"([{"name": "PET_NNODES", "value": "6"},
    {"name": "WORLD_SIZE", "value": "4"}])")
                .size,
            6);
  EXPECT_EQ(of("jaxjob-controller", R"([{"name": "NUM_PROCESSES", "value": "5"},
    {"name": "PROCESS_ID", "value": "1"}])")
                .size,
            5);
  // A number that may change, or that the pod does not contain, is not guessed.
  for (const char* env : {R"([{"name": "PET_NNODES", "value": "1:4"}])", R"([])", R"({})",
                          R"([{"name": "WORLD_SIZE", "value": "9"},
                              {"name": "PET_NPROC_PER_NODE", "value": "8"}])",
                          R"([{"name": "WORLD_SIZE", "value": "9"},
                              {"name": "PET_NPROC_PER_NODE", "value": "auto"}])"}) {
    EXPECT_EQ(of("pytorchjob-controller", env).size, std::nullopt) << env;
  }
  workload = of("mpi-operator", R"([{"name": "WORLD_SIZE", "value": "9"}])");
  EXPECT_EQ(workload.kind->name, "MPIJob");
  EXPECT_EQ(workload.size, std::nullopt);
  EXPECT_EQ(workload.index, 2);
  EXPECT_FALSE(JobOf(KubeflowPod("other", "[]")).has_value());
}

TEST(JobTest, PodsOfASchedulingGroup) {
  const Json pod = {{"spec", {{"schedulingGroup", {{"podGroupName", "pg"}}}}}};
  EXPECT_EQ(JobOf(pod)->part, "PodGroup/pg");
  EXPECT_FALSE(JobOf(Json{{"spec", Json::object()}}).has_value());
}

TEST(JobTest, TemplatesOfAJobSetAreAlikeSoNothingIsBesideThem) {
  EXPECT_EQ(PartOfSeveralTemplates(*JobOf(JobSetPod(0, 0))), "");
  const Json group = Json::parse(R"({"metadata": {
    "labels": {"leaderworkerset.sigs.k8s.io/name": "serve",
               "leaderworkerset.sigs.k8s.io/group-index": "0",
               "leaderworkerset.sigs.k8s.io/template-revision-hash": "a"},
    "annotations": {"leaderworkerset.sigs.k8s.io/size": "3"}}})");
  EXPECT_EQ(PartOfSeveralTemplates(*JobOf(group)), "LeaderWorkerSet/serve/0@a");
}

TEST(JobTest, WhoeverPlacesTheFirstPodBeforeTheOthersAreMade) {
  EXPECT_EQ(ExclusiveTopologyOf(JobSetPod(0, 0)), "");
  for (const char* annotation : {"alpha.jobset.sigs.k8s.io/exclusive-topology",
                                 "leaderworkerset.sigs.k8s.io/exclusive-topology",
                                 "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"}) {
    Json pod = JobSetPod(0, 0);
    pod["metadata"]["annotations"][annotation] = "rack";
    EXPECT_EQ(ExclusiveTopologyOf(pod), annotation);
  }
}

Json PodWith(const char* metadata) { return {{"metadata", Json::parse(metadata)}}; }

TEST(IdentityTest, PodsOfOneControllerAreOneJob) {
  EXPECT_EQ(*IdentityOf(PodWith(R"({"ownerReferences":[{"kind":"Workflow","uid":"w"},
                           {"kind":"Job","uid":"u1","controller":true}]})")),
            "controller/u1");
}

TEST(IdentityTest, PodsOfDifferentControllersMayBeOneJob) {
  const std::string label = *IdentityOf(PodWith(R"({"labels":{"jobset.sigs.k8s.io/jobset-name":"s",
      "jobset.sigs.k8s.io/jobset-uid":"su"},
      "ownerReferences":[{"kind":"Job","uid":"u1","controller":true}]})"));
  EXPECT_EQ(label, "JobSet/s/su");
  EXPECT_EQ(*IdentityOf(PodWith(R"({"labels":{"leaderworkerset.sigs.k8s.io/name":"l"},
                "ownerReferences":[{"kind":"StatefulSet","uid":"u1","controller":true}]})")),
            "LeaderWorkerSet/l/");
  EXPECT_EQ(*IdentityOf(PodWith(R"({"labels":{"training.kubeflow.org/job-name":"m",
                "training.kubeflow.org/operator-name":"mpi-operator"},
                "ownerReferences":[{"kind":"Job","uid":"u1","controller":true}]})")),
            "MPIJob/m/");
  EXPECT_EQ(*IdentityOf(PodWith(R"({"labels":{"training.kubeflow.org/job-name":"p",
                "training.kubeflow.org/operator-name":"pytorchjob-controller"},
                "ownerReferences":[{"kind":"PyTorchJob","uid":"u1","controller":true}]})")),
            "controller/u1");
  EXPECT_EQ(*IdentityOf(PodWith(R"({"labels":{"railhead.io/gang":"g"}})")), "gang/g");
}

TEST(IdentityTest, TheAnnotationWinsAndIsNoOtherJob) {
  EXPECT_EQ(*IdentityOf(PodWith(R"({"annotations":{"railhead.io/job":"controller/u1"},
                "ownerReferences":[{"kind":"Job","uid":"u2","controller":true}]})")),
            "annotation/controller/u1");
}

TEST(IdentityTest, SomePodsBelongToNoJob) {
  EXPECT_THAT(std::string(IdentityOf(PodWith("{}")).status().message()),
              AllOf(HasSubstr("no controller"), HasSubstr("railhead.io/job")));
  for (const char* kind : {"ReplicaSet", "DaemonSet", "Node"}) {
    const absl::Status status =
        IdentityOf(PodWith(absl::StrCat(R"({"ownerReferences":[{"kind":")", kind,
                                        R"(","uid":"u","controller":true}]})")
                               .c_str()))
            .status();
    EXPECT_TRUE(absl::IsNotFound(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr(kind));
  }
  for (const char* odd : {R"({"labels":7,"annotations":[],"ownerReferences":{}})",
                          R"({"annotations":{"railhead.io/job":7},"ownerReferences":[7,{}]})",
                          R"({"ownerReferences":[{"kind":"Job","controller":true}]})"}) {
    EXPECT_TRUE(absl::IsNotFound(IdentityOf(PodWith(odd)).status())) << odd;
  }
  EXPECT_TRUE(absl::IsNotFound(IdentityOf(Json()).status()));
}

}  // namespace
}  // namespace railhead::jobs
