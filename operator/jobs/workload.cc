// SPDX-License-Identifier: Apache-2.0
#include "operator/jobs/workload.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kube/elements.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using kube::FindPath;
using kube::Json;
using kube::StringAt;

constexpr absl::string_view kJobSet = "jobset.sigs.k8s.io/";
constexpr absl::string_view kLeaderWorkerSet = "leaderworkerset.sigs.k8s.io/";
constexpr absl::string_view kKubeflow = "training.kubeflow.org/";

constexpr absl::string_view kExclusiveTopology[] = {
    "alpha.jobset.sigs.k8s.io/exclusive-topology",
    "leaderworkerset.sigs.k8s.io/exclusive-topology",
    "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology",
};

// Values of the label training.kubeflow.org/operator-name, and their kinds of job.
struct KubeflowKind {
  absl::string_view operator_name;
  absl::string_view kind;
};
constexpr KubeflowKind kKubeflowKinds[] = {
    {"jaxjob-controller", "JAXJob"},         {"mpi-operator", "MPIJob"},
    {"mpijob-controller", "MPIJob"},         {"paddlejob-controller", "PaddleJob"},
    {"pytorchjob-controller", "PyTorchJob"}, {"tfjob-controller", "TFJob"},
    {"xgboostjob-controller", "XGBoostJob"},
};

std::string Label(const Json& pod, absl::string_view prefix, absl::string_view name) {
  return StringAt(pod, {"metadata", "labels", absl::StrCat(prefix, name)});
}

std::string Annotation(const Json& pod, absl::string_view prefix, absl::string_view name) {
  return StringAt(pod, {"metadata", "annotations", absl::StrCat(prefix, name)});
}

std::optional<int> Number(const std::string& text, int min) {
  int number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < min || number > kMostPods) return std::nullopt;
  return number;
}

std::optional<Workload> JobSetOf(const Json& pod) {
  Workload workload;
  workload.kind = "JobSet";
  workload.name = Label(pod, kJobSet, "jobset-name");
  if (workload.name.empty()) return std::nullopt;
  // Another one of the same name has another uid; older controllers do not write it.
  workload.whole = absl::StrCat("JobSet/", workload.name, "/", Label(pod, kJobSet, "jobset-uid"));
  workload.part = absl::StrCat(workload.whole, "/", Label(pod, kJobSet, "replicatedjob-name"));
  workload.attempt = Label(pod, kJobSet, "restart-attempt");
  workload.size = Number(Annotation(pod, "", kGangSize), 1);
  if (const std::optional<int> index = Number(Annotation(pod, "", kCompletionIndex), 0);
      workload.size && index) {
    workload.index = IndexInReplicatedJob(pod, *workload.size, *index);
  }
  return workload;
}

std::optional<Workload> LeaderWorkerSetOf(const Json& pod) {
  Workload workload;
  workload.kind = "LeaderWorkerSet";
  workload.name = Label(pod, kLeaderWorkerSet, "name");
  const std::string group = Label(pod, kLeaderWorkerSet, "group-index");
  if (workload.name.empty() || group.empty()) return std::nullopt;
  workload.whole = absl::StrCat("LeaderWorkerSet/", workload.name);
  workload.part = absl::StrCat(workload.whole, "/", group);
  workload.attempt = Label(pod, kLeaderWorkerSet, "template-revision-hash");
  workload.size = Number(Annotation(pod, kLeaderWorkerSet, "size"), 1);
  workload.index = Number(Label(pod, kLeaderWorkerSet, "worker-index"), 0);
  return workload;
}

// Returns the number of pods; nullopt if it is unknown, or may change ("1:4").
std::optional<int> KubeflowSize(const Json& pod, absl::string_view kind) {
  if (kind == "JAXJob") return Number(VariableOf(pod, "NUM_PROCESSES"), 1);
  if (kind == "PaddleJob") return Number(VariableOf(pod, "PADDLE_NNODES"), 1);
  if (kind == "TFJob") return std::nullopt;  // TF_CONFIG leaves evaluators out
  if (const std::string nodes = VariableOf(pod, "PET_NNODES"); !nodes.empty()) {
    return Number(nodes, 1);
  }
  const std::optional<int> ranks = Number(VariableOf(pod, "WORLD_SIZE"), 1);
  const std::string per_pod = VariableOf(pod, "PET_NPROC_PER_NODE");
  const std::optional<int> divisor = per_pod.empty() ? 1 : Number(per_pod, 1);
  if (!ranks || !divisor || *ranks % *divisor != 0) return std::nullopt;
  return *ranks / *divisor;
}

std::optional<int> KubeflowIndex(const Json& pod, absl::string_view kind) {
  if (kind == "JAXJob") return Number(VariableOf(pod, "PROCESS_ID"), 0);
  // With parameter servers there are two pods of an index.
  if (kind == "PaddleJob" && VariableOf(pod, "PADDLE_SERVER_NUM").empty() &&
      VariableOf(pod, "PADDLE_TRAINER_NUM").empty()) {
    return Number(Label(pod, kKubeflow, "replica-index"), 0);
  }
  if (kind == "PaddleJob" || kind == "TFJob") return std::nullopt;
  const std::optional<int> node = Number(VariableOf(pod, "PET_NODE_RANK"), 0);
  return node ? node : Number(VariableOf(pod, "RANK"), 0);
}

std::optional<Workload> KubeflowOf(const Json& pod) {
  const std::string job = Label(pod, kKubeflow, "job-name");
  const std::string controller = Label(pod, kKubeflow, "operator-name");
  const auto* known =
      std::find_if(std::begin(kKubeflowKinds), std::end(kKubeflowKinds),
                   [&](const KubeflowKind& kind) { return kind.operator_name == controller; });
  if (job.empty() || known == std::end(kKubeflowKinds)) return std::nullopt;
  Workload workload;
  workload.kind = std::string(known->kind);
  workload.name = job;
  workload.whole = absl::StrCat(workload.kind, "/", job);
  workload.part = workload.whole;
  if (workload.kind == "MPIJob") {
    workload.index = Number(Label(pod, kKubeflow, "replica-index"), 0);
    return workload;
  }
  workload.size = KubeflowSize(pod, workload.kind);
  workload.index = KubeflowIndex(pod, workload.kind);
  return workload;
}

std::optional<Workload> PodGroupOf(const Json& pod) {
  Workload workload;
  workload.kind = "PodGroup";
  workload.name = StringAt(pod, {"spec", "schedulingGroup", "podGroupName"});
  if (workload.name.empty()) return std::nullopt;
  workload.whole = absl::StrCat("PodGroup/", workload.name);
  workload.part = workload.whole;
  return workload;
}

}  // namespace

std::string VariableOf(const Json& pod, absl::string_view name) {
  for (const Json& container : kube::ElementsAt(pod, {"spec", "containers"})) {
    for (const Json& variable : kube::ElementsAt(container, {"env"})) {
      if (StringAt(variable, {"name"}) != name) continue;
      if (std::string value = StringAt(variable, {"value"}); !value.empty()) return value;
    }
  }
  return "";
}

std::optional<int> IndexInReplicatedJob(const Json& pod, int pods, int index) {
  const std::optional<int> jobs = Number(Label(pod, kJobSet, "replicatedjob-replicas"), 1);
  const std::optional<int> job = Number(Label(pod, kJobSet, "job-index"), 0);
  if (!jobs || !job || *job >= *jobs || pods < *jobs || pods % *jobs != 0) return std::nullopt;
  const int64_t all = int64_t{*job} * (pods / *jobs) + index;
  return all <= kMostPods ? std::optional<int>(static_cast<int>(all)) : std::nullopt;
}

bool IsInSchedulingGroup(const Json& pod) {
  const Json* group = FindPath(pod, {"spec", "schedulingGroup"});
  return group != nullptr && group->is_object();
}

bool IsOfTrainingOperator(const std::string& kind) {
  return std::any_of(std::begin(kKubeflowKinds), std::end(kKubeflowKinds),
                     [&](const KubeflowKind& known) { return known.kind == kind; });
}

std::vector<std::string> WorkloadKinds() {
  std::set<std::string> kinds = {"Job", "JobSet", "LeaderWorkerSet", "PodGroup"};
  for (const KubeflowKind& known : kKubeflowKinds) kinds.insert(std::string(known.kind));
  return {kinds.begin(), kinds.end()};
}

std::string PartOfSeveralTemplates(const Workload& workload) {
  // All Jobs of a replicatedJob have one template; the size of a PodGroup is unknown.
  if (workload.kind == "JobSet" || !workload.size) return "";
  return absl::StrCat(workload.part, "@", workload.attempt);
}

std::string ExclusiveTopologyOf(const Json& pod) {
  for (const absl::string_view annotation : kExclusiveTopology) {
    if (!Annotation(pod, "", annotation).empty()) return std::string(annotation);
  }
  return "";
}

std::optional<Workload> WorkloadOf(const Json& pod) {
  for (const auto read : {JobSetOf, LeaderWorkerSetOf, KubeflowOf, PodGroupOf}) {
    if (std::optional<Workload> workload = read(pod)) return workload;
  }
  return std::nullopt;
}

}  // namespace railhead::op::gangs
