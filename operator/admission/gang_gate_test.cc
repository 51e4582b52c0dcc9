// SPDX-License-Identifier: Apache-2.0
//
// Gangs at admission.
#include "operator/admission/gang_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "operator/admission/mutation.h"
#include "operator/config/config.h"
#include "operator/objects/names.h"
#include "operator/objects/not_done.h"
#include "operator/profiles/profile_set.h"

namespace railhead::op {
namespace {

using gangs::kGangLabel;
using gangs::kGangSize;
using gangs::kGate;
using kube::Json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const InjectionConfig kGangsServed = {.environment = {}, .gangs = true};

Json Pod() {
  return Json::parse(R"({"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "w-0", "labels": {"railhead.io/gang": "g"},
                 "annotations": {"railhead.io/gang-size": "4"}},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"rdma/hca": "1"}}}]}})");
}

Mutation Admit(const Json& pod, const InjectionConfig& config = kGangsServed) {
  return MutatePod(pod, config, ProfileSet(), "train");
}

// What spec.schedulingGates is after admission, and then again after the next.
Json GatesOf(const Json& pod, const InjectionConfig& config = kGangsServed) {
  const Json once = pod.patch(Admit(pod, config).patch);
  EXPECT_EQ(Admit(once, config).outcome, Outcome::kUnchanged);
  return once["spec"].value("schedulingGates", Json());
}

// What the pod's annotation says, in sentences.
std::string NotDoneOf(const Json& pod) {
  return FormatNotDone(
      ParseNotDone(pod["metadata"]["annotations"].value("railhead.io/not-done", "")));
}

TEST(GangGate, APodThatAsksForItWaitsForItsGang) {
  EXPECT_EQ(GatesOf(Pod()), Json::parse(R"([{"name": "railhead.io/gang"}])"));
  EXPECT_THAT(Admit(Pod()).warnings, IsEmpty());
  Json pod = Pod();
  pod["spec"]["schedulingGates"] = {{{"name", "another"}}};
  EXPECT_EQ(GatesOf(pod), Json::parse(R"([{"name": "another"}, {"name": "railhead.io/gang"}])"));
}

// What a container's env says of each of these; null: nothing.
Json EnvOf(const Json& pod, const InjectionConfig& config = kGangsServed) {
  const Json admitted = pod.patch(Admit(pod, config).patch);
  Json told;
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    for (const Json& variable : admitted["spec"]["containers"][0]["env"]) {
      if (variable["name"] != name) continue;
      told[name] = variable.contains("value") ? variable["value"]
                                              : variable["valueFrom"]["fieldRef"]["fieldPath"];
    }
  }
  return told;
}

TEST(GangGate, APodWithoutAnIndexIsToldItsRankWhenItIsPlaced) {
  EXPECT_EQ(EnvOf(Pod()), Json::parse(R"({"RANK": "metadata.annotations['railhead.io/rank']",
                                          "WORLD_SIZE": "4"})"));
  Json pod = Pod();
  pod["spec"]["hostname"] = "w-0";
  pod["spec"]["subdomain"] = "ring";
  EXPECT_EQ(EnvOf(pod),
            Json::parse(R"({"RANK": "metadata.annotations['railhead.io/rank']", "WORLD_SIZE": "4",
                            "MASTER_ADDR": "metadata.annotations['railhead.io/master-addr']",
                            "MASTER_PORT": "29500"})"));
  // Nobody would say it: it does not wait.
  EXPECT_EQ(EnvOf(pod, {}), Json());
  Json alone = pod;
  alone["spec"]["nodeName"] = "n";
  EXPECT_EQ(EnvOf(alone), Json());
  // It is known already.
  Json indexed = pod;
  indexed["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = "2";
  indexed["metadata"]["annotations"]["railhead.io/world-size"] = "4";
  EXPECT_EQ(EnvOf(indexed)["RANK"], "2");
  pod["metadata"]["annotations"]["leaderworkerset.sigs.k8s.io/size"] = "4";
  pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/name"] = "set";
  pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"] = "0";
  pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/worker-index"] = "1";
  pod["metadata"]["labels"]["railhead.io/gang"] = "true";
  EXPECT_EQ(EnvOf(pod)["RANK"], "1");
  EXPECT_EQ(EnvOf(pod)["MASTER_ADDR"], "set-0.ring");
}

TEST(GangGate, NoPodWaitsWhereTheFirstHasToHaveANodeBeforeTheOthersAreMade) {
  for (const char* annotation : {"alpha.jobset.sigs.k8s.io/exclusive-topology",
                                 "leaderworkerset.sigs.k8s.io/exclusive-topology"}) {
    Json pod = Pod();
    pod["metadata"]["annotations"][annotation] = "rack";
    const Json admitted = pod.patch(Admit(pod, kGangsServed).patch);
    EXPECT_FALSE(admitted["spec"].contains("schedulingGates"));
    EXPECT_THAT(NotDoneOf(admitted),
                AllOf(HasSubstr(annotation), HasSubstr("railhead.io/require-level")));
  }
}

// One of four that kube-scheduler places together, made by an Indexed Job.
Json NativePod() {
  Json pod = Pod();
  pod["metadata"]["labels"][kGangLabel] = "true";
  pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = "2";
  pod["metadata"]["annotations"]["railhead.io/world-size"] = "4";
  pod["metadata"]["ownerReferences"] = {
      {{"kind", "Job"}, {"name", "job"}, {"uid", "1"}, {"controller", true}}};
  pod["spec"]["schedulingGroup"] = {{"podGroupName", "group"}};
  pod["spec"]["hostname"] = "job-2";
  pod["spec"]["subdomain"] = "ring";
  pod["spec"]["containers"][0]["image"] = "train";
  return pod;
}

TEST(GangGate, APodOfASchedulingGroupIsTheSchedulersToPlace) {
  EXPECT_EQ(GatesOf(NativePod()), Json());
  EXPECT_THAT(Admit(NativePod()).warnings, IsEmpty());
  // With a label that its kind asks for, too.
  InjectionConfig config = kGangsServed;
  config.gang_kinds = {"PodGroup"};
  Json pod = NativePod();
  pod["metadata"].erase("labels");
  EXPECT_EQ(GatesOf(pod, config), Json());
  EXPECT_EQ(pod.patch(Admit(pod, config).patch)["metadata"]["labels"][kGangLabel], "true");
  // Whatever would keep others from waiting is not of interest.
  pod = NativePod();
  pod["spec"]["schedulerName"] = "another";
  pod["spec"]["topologySpreadConstraints"] = {{{"whenUnsatisfiable", "DoNotSchedule"}}};
  EXPECT_EQ(GatesOf(pod), Json());
  EXPECT_THAT(Admit(pod).warnings, IsEmpty());
}

TEST(GangGate, APodOfASchedulingGroupIsToldItsRankWhenTheGroupHasItsNodes) {
  const Json told = Json::parse(R"({"RANK": "metadata.annotations['railhead.io/rank']",
      "WORLD_SIZE": "4", "MASTER_ADDR": "metadata.annotations['railhead.io/master-addr']",
      "MASTER_PORT": "29500"})");
  EXPECT_EQ(EnvOf(NativePod()), told);
  Json pod = NativePod();
  pod["metadata"]["annotations"]["railhead.io/rank"] = "3";  // of the pod that it was copied from
  const Json admitted = pod.patch(Admit(pod).patch);
  EXPECT_EQ(admitted["metadata"]["annotations"]["railhead.io/rank"], "");
  // It starts when it has its rank.
  const Json& wait = admitted["spec"]["initContainers"][0];
  EXPECT_EQ(wait["name"], "railhead-wait-for-rank");
  EXPECT_EQ(wait["image"], "train");
  EXPECT_EQ(wait["volumeMounts"][0]["name"], admitted["spec"]["volumes"][0]["name"]);
  EXPECT_EQ(admitted["spec"]["volumes"][0]["downwardAPI"]["items"][0]["fieldRef"]["fieldPath"],
            "metadata.annotations['railhead.io/rank']");
  // Pods that nobody numbers.
  pod = NativePod();
  pod["metadata"]["annotations"] = {{kGangSize, "4"}};
  EXPECT_EQ(EnvOf(pod), told);
}

TEST(GangGate, APodOfASchedulingGroupKeepsARankThatIsKnown) {
  const auto expect_index = [](const Json& pod, const InjectionConfig& config = kGangsServed) {
    EXPECT_EQ(EnvOf(pod, config)["RANK"], "2");
    const Json admitted = pod.patch(Admit(pod, config).patch);
    EXPECT_FALSE(admitted["spec"].contains("initContainers"));
    EXPECT_FALSE(admitted["metadata"]["annotations"].contains("railhead.io/rank"));
    EXPECT_EQ(GatesOf(pod, config), Json());
  };
  Json pod = NativePod();
  pod["metadata"].erase("labels");  // it does not ask for it
  expect_index(pod);
  expect_index(NativePod(), {});  // nobody would say it
  pod = NativePod();              // the gang is more than the job whose ranks they are
  pod["metadata"]["annotations"][kGangSize] = "8";
  expect_index(pod);
  pod = NativePod();  // the leader is the one that the others look for
  pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/name"] = "set";
  pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"] = "0";
  pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/worker-index"] = "2";
  pod["metadata"]["annotations"] = {{"leaderworkerset.sigs.k8s.io/size", "4"}};
  expect_index(pod);
}

TEST(GangGate, WhatAPodOfASchedulingGroupCannotHaveIsTold) {
  const auto not_done = [](const Json& pod) {
    EXPECT_EQ(GatesOf(pod), Json());
    return NotDoneOf(pod.patch(Admit(pod).patch));
  };
  Json pod = NativePod();
  pod["metadata"]["annotations"]["railhead.io/require-level"] = "leaf";
  EXPECT_THAT(not_done(pod), AllOf(HasSubstr("GangNotPossible: "),
                                   HasSubstr("metadata.annotations[railhead.io/require-level]"),
                                   HasSubstr("schedulingConstraints")));
  pod = NativePod();
  pod["metadata"]["annotations"] = Json::object();
  EXPECT_THAT(not_done(pod), AllOf(HasSubstr("GangNotPossible: "), HasSubstr("no RANK"),
                                   HasSubstr("[railhead.io/gang-size] is missing")));
}

TEST(GangGate, NobodyElseIsGated) {
  EXPECT_EQ(GatesOf(Pod(), {}), Json());  // gangs are not served
  for (const char* label : {"", "false"}) {
    Json pod = Pod();
    pod["metadata"]["labels"]["railhead.io/gang"] = label;
    EXPECT_EQ(GatesOf(pod), Json());
    EXPECT_THAT(Admit(pod).warnings, IsEmpty());
  }
  Json pod = Pod();
  pod["spec"]["containers"][0]["resources"]["limits"] = {{"cpu", "1"}};
  EXPECT_EQ(Admit(pod).outcome, Outcome::kIgnored);
}

TEST(GangGate, WhatCannotBeIsToldWithItsFieldAndThePodStarts) {
  const auto warning = [](const char* patch) {
    Json pod = Pod();
    pod.merge_patch(Json::parse(patch));
    EXPECT_EQ(GatesOf(pod), Json()) << patch;
    const std::vector<std::string> warnings = Admit(pod).warnings;
    return warnings.size() == 1 ? warnings[0] : "";
  };
  const auto annotation = [&](const char* name, const char* value) {
    return warning(Json{{"metadata", {{"annotations", {{name, value}}}}}}.dump().c_str());
  };
  EXPECT_THAT(warning(R"({"metadata": {"annotations": {"railhead.io/gang-size": null}}})"),
              HasSubstr("does not wait for its gang: metadata.annotations[railhead.io/gang-size] "
                        "is missing; set it"));
  for (const char* size : {"", "0", "-1", "4.5", "all", "100001"}) {
    EXPECT_THAT(annotation("railhead.io/gang-size", size), HasSubstr("number of pods from 1 to"));
  }
  EXPECT_THAT(warning(R"({"metadata": {"labels": {"railhead.io/gang": "true"}}})"),
              HasSubstr("set the label to a name for the gang"));
  EXPECT_THAT(warning(R"({"spec": {"nodeName": "n"}})"), HasSubstr("spec.nodeName"));
  EXPECT_THAT(warning(R"({"spec": {"affinity": {"podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "x"}]}}}})"),
              HasSubstr("spec.affinity.podAntiAffinity is not supported for gangs"));
  EXPECT_THAT(warning(R"({"spec": {"topologySpreadConstraints": [
                {"whenUnsatisfiable": "DoNotSchedule"}]}})"),
              HasSubstr("spec.topologySpreadConstraints"));
  EXPECT_THAT(warning(R"({"spec": {"containers": [{"name": "main", "resources": {"limits": {
                "rdma/hca": "1", "deviceclass.resource.kubernetes.io/nic": "1"}}}]}})"),
              HasSubstr("deviceclass.resource.kubernetes.io/nic is not listed by nodes"));
  EXPECT_THAT(annotation("railhead.io/pattern", "star"), HasSubstr("ring, tree or alltoall"));
  EXPECT_THAT(annotation("railhead.io/same-rails", "yes"), HasSubstr("must be true or false"));
  EXPECT_THAT(annotation("railhead.io/require-level", ""), HasSubstr("name of a level"));
}

TEST(GangGate, HowLongItWaitsMustBeAsItIsRead) {
  const auto warning = [](const char* annotations) {
    Json pod = Pod();
    pod["metadata"]["annotations"].merge_patch(Json::parse(annotations));
    const std::vector<std::string> warnings = Admit(pod).warnings;
    EXPECT_EQ(GatesOf(pod).empty(), !warnings.empty()) << annotations;
    return warnings.empty() ? "" : warnings[0];
  };
  const char* timeout = "railhead.io/gang-timeout";
  EXPECT_EQ(warning(R"({"railhead.io/gang-timeout": "1h30m",
                        "railhead.io/gang-timeout-policy": "fail"})"),
            "");
  EXPECT_EQ(warning(R"({"railhead.io/prefer-level": "leaf", "railhead.io/prefer-wait": "90s"})"),
            "");
  for (const char* wait : {"", "10", "-1m", "0s", "long"}) {
    EXPECT_THAT(
        warning(Json{{timeout, wait}, {"railhead.io/gang-timeout-policy", "fail"}}.dump().c_str()),
        HasSubstr("[railhead.io/gang-timeout] must be a duration such as"));
  }
  for (const char* annotations :
       {R"({"railhead.io/gang-timeout": "1m"})", R"({"railhead.io/gang-timeout-policy": "fail"})",
        R"({"railhead.io/gang-timeout": "1m", "railhead.io/gang-timeout-policy": "keep"})"}) {
    EXPECT_THAT(warning(annotations),
                HasSubstr("must be release or fail, and be set together with"));
  }
  EXPECT_THAT(warning(R"({"railhead.io/prefer-wait": "1m"})"),
              HasSubstr("prefer-wait] needs metadata.annotations[railhead.io/prefer-level]"));
}

TEST(GangGate, WhoHasAnotherSchedulerIsItsBusiness) {
  Json pod = Pod();
  pod["spec"]["schedulerName"] = "default-scheduler";
  EXPECT_FALSE(GatesOf(pod).empty());
  pod["spec"]["schedulerName"] = "volcano";
  EXPECT_TRUE(GatesOf(pod).empty());
  EXPECT_THAT(Admit(pod).warnings, ElementsAre(HasSubstr("spec.schedulerName is volcano")));
}

TEST(GangGate, WhatItsKindSaysOfTheSizeIsTaken) {
  Json pod = Pod();
  pod["metadata"]["annotations"] = {{"leaderworkerset.sigs.k8s.io/size", "3"}};
  pod["metadata"]["labels"] = {{"railhead.io/gang", "true"},
                               {"leaderworkerset.sigs.k8s.io/name", "s"},
                               {"leaderworkerset.sigs.k8s.io/group-index", "0"}};
  EXPECT_FALSE(GatesOf(pod).empty());
  EXPECT_EQ(pod.patch(Admit(pod).patch)["metadata"]["annotations"][kGangSize], "3");
  pod["metadata"]["annotations"][kGangSize] = "2";
  EXPECT_EQ(pod.patch(Admit(pod).patch)["metadata"]["annotations"][kGangSize], "2");
}

TEST(GangGate, APodIsAGangWithoutAskingWhereItsKindIsConfigured) {
  InjectionConfig config = kGangsServed;
  config.gang_kinds = {"LeaderWorkerSet", "MPIJob"};
  Json pod = Pod();
  pod["metadata"]["annotations"] = {{"leaderworkerset.sigs.k8s.io/size", "3"}};
  pod["metadata"]["labels"] = {{"leaderworkerset.sigs.k8s.io/name", "s"},
                               {"leaderworkerset.sigs.k8s.io/group-index", "0"}};
  EXPECT_EQ(GatesOf(pod), Json());  // by default nobody is
  EXPECT_FALSE(GatesOf(pod, config).empty());
  EXPECT_EQ(pod.patch(Admit(pod, config).patch)["metadata"]["labels"][kGangLabel], "true");
  pod["metadata"]["labels"][kGangLabel] = "false";
  EXPECT_EQ(GatesOf(pod, config), Json());
  // Nobody says how many there are, and it is the administrator who has asked.
  pod["metadata"]["labels"] = {{"training.kubeflow.org/job-name", "m"},
                               {"training.kubeflow.org/operator-name", "mpi-operator"}};
  EXPECT_EQ(GatesOf(pod, config), Json());
  EXPECT_THAT(NotDoneOf(pod.patch(Admit(pod, config).patch)),
              HasSubstr("GangOfKindNotPossible: the pod does not wait for its gang: metadata."));
}

TEST(GangGate, AGateWithoutALabelIsTold) {
  Json pod = Pod();
  pod["metadata"].erase("labels");
  pod["spec"]["schedulingGates"] = {{{"name", kGate}}};
  EXPECT_THAT(Admit(pod).warnings,
              ElementsAre(HasSubstr("railhead.io/gang is never removed from a pod without")));
}

Json Job(const char* patch = "{}") {
  Json job = Json::parse(R"({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
    "spec": {"completionMode": "Indexed", "completions": 4, "parallelism": 4,
             "template": {"spec": {"subdomain": "j", "containers": [
               {"name": "main", "resources": {"limits": {"rdma/hca": "1"}}}]}}}})");
  job.merge_patch(Json::parse(patch));
  return job;
}

// The template's metadata after admission.
Json Stamped(const Json& job, const InjectionConfig& config = kGangsServed) {
  const Json once = job.patch(StampJob(job, config).patch);
  EXPECT_EQ(StampJob(once, config).outcome, Outcome::kUnchanged);
  return once["spec"]["template"].value("metadata", Json());
}

TEST(GangGate, AJobsTemplateGetsTheSizeAndTheJobsLabel) {
  const Json wanted = Json::parse(R"({"labels": {"railhead.io/gang": "true"},
    "annotations": {"railhead.io/gang-size": "4", "railhead.io/world-size": "4"}})");
  EXPECT_EQ(Stamped(Job(R"({"metadata": {"labels": {"railhead.io/gang": "true"}}})")), wanted);
  const Json by_template =
      Job(R"({"spec": {"template": {"metadata": {"labels": {"railhead.io/gang": "true"}}}}})");
  EXPECT_EQ(Stamped(by_template), wanted);
  EXPECT_THAT(StampJob(by_template, kGangsServed).warnings, IsEmpty());
  const Json with_others = Job(R"({"metadata": {"labels": {"railhead.io/gang": "true"}},
              "spec": {"template": {"metadata": {"labels": {"app": "x"}}}}})");
  EXPECT_EQ(Stamped(with_others)["labels"],
            Json::parse(R"({"app": "x", "railhead.io/gang": "true"})"));
}

TEST(GangGate, JobsThatDoNotAskOrWhereGangsAreNotServedGetNoSize) {
  const Json plain = Json::parse(R"({"annotations": {"railhead.io/world-size": "4"}})");
  EXPECT_EQ(Stamped(Job()), plain);
  EXPECT_EQ(Stamped(Job(R"({"metadata": {"labels": {"railhead.io/gang": "true"}}})"), {}), plain);
}

TEST(GangGate, AJobIsAGangWithoutAskingWhereItsKindIsConfigured) {
  InjectionConfig config = kGangsServed;
  config.gang_kinds = {"Job"};
  const Json wanted = Json::parse(R"({"labels": {"railhead.io/gang": "true"},
    "annotations": {"railhead.io/gang-size": "4", "railhead.io/world-size": "4"}})");
  EXPECT_EQ(Stamped(Job(), config), wanted);
  const Json of_jobset = Job(R"({"metadata": {"labels": {
    "jobset.sigs.k8s.io/jobset-name": "s", "jobset.sigs.k8s.io/replicatedjob-replicas": "3"}}})");
  EXPECT_FALSE(Stamped(of_jobset, config).contains("labels"));
  config.gang_kinds = {"JobSet"};
  EXPECT_FALSE(Stamped(Job(), config).contains("labels"));
  // All Jobs that are alike are one gang.
  EXPECT_EQ(Stamped(of_jobset, config)["annotations"][kGangSize], "12");
  EXPECT_EQ(Stamped(of_jobset, config)["labels"][kGangLabel], "true");
}

TEST(GangGate, AJobWithoutIndicesCanBeAGangToo) {
  const Json metadata = Stamped(Job(R"({"metadata": {"labels": {"railhead.io/gang": "true"}},
                                        "spec": {"completionMode": null, "parallelism": 3}})"));
  EXPECT_EQ(metadata["annotations"], Json::parse(R"({"railhead.io/gang-size": "3"})"));
}

TEST(GangGate, AStampOfAnotherJobIsTold) {
  const Json job = Job(
      R"({"spec": {"template": {"metadata": {"annotations": {"railhead.io/world-size": "16"}}}}})");
  EXPECT_THAT(StampJob(job, kGangsServed).warnings,
              ElementsAre(HasSubstr("[railhead.io/world-size] is 16, but spec.completions is 4")));
  EXPECT_EQ(Stamped(job)["annotations"]["railhead.io/world-size"], "16");
}

TEST(GangGate, PodsThatAreNeverMadeAreNoneOfTheGang) {
  const auto size = [](const char* spec) {
    Json job = Job(R"({"metadata": {"labels": {"railhead.io/gang": "true"}}})");
    job.merge_patch(Json::parse(spec));
    return Stamped(job)["annotations"][kGangSize];
  };
  EXPECT_EQ(size(R"({"spec": {"parallelism": 8}})"), "4");
  // Without completions there are as many at once as are allowed.
  EXPECT_EQ(size(R"({"spec": {"completionMode": null, "completions": null, "parallelism": 8}})"),
            "8");
}

TEST(GangGate, AJobThatIgnoresDisruptionsSaysSoToItsPods) {
  const auto evictable = [](const char* policy) {
    Json job = Job(R"({"metadata": {"labels": {"railhead.io/gang": "true"}}})");
    job["spec"]["podFailurePolicy"] = Json::parse(policy);
    return Stamped(job)["annotations"].contains("railhead.io/evictable");
  };
  EXPECT_TRUE(evictable(R"({"rules": [
    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]})"));
  // The first rule that matches is the one that counts.
  EXPECT_FALSE(evictable(R"({"rules": [
    {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]})"));
  EXPECT_FALSE(evictable(R"({"rules": [
    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "False"}]}]})"));
  EXPECT_FALSE(evictable(R"({"rules": [
    {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]})"));
  EXPECT_FALSE(evictable("null"));
}

TEST(GangGate, AJobOfAnotherSizeThanItSaysOrOfNoneIsWarned) {
  const char* label = R"({"metadata": {"labels": {"railhead.io/gang": "true"}},
    "spec": {"template": {"metadata": {"annotations": {"railhead.io/gang-size": "3"}}}}})";
  EXPECT_THAT(StampJob(Job(label), kGangsServed).warnings,
              ElementsAre(HasSubstr("is not spec.parallelism, which is 4")));
  EXPECT_THAT(StampJob(Job(R"({"metadata": {"labels": {"railhead.io/gang": "true"}},
                               "spec": {"parallelism": 0}})"),
                       kGangsServed)
                  .warnings,
              Contains(HasSubstr("spec.suspend")));
}

}  // namespace
}  // namespace railhead::op
