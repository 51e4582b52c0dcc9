// SPDX-License-Identifier: Apache-2.0
//
// Kinds of Kubeflow's training operator, by the labels training.kubeflow.org/*: all pods of the
// job. Size, index and rank come from variables that the controller sets in containers:
//
//  PyTorchJob, XGBoostJob: RANK, WORLD_SIZE and MASTER_ADDR; none if the number of pods may change.
//  JAXJob: PROCESS_ID, NUM_PROCESSES and COORDINATOR_ADDRESS.
//  TFJob: TF_CONFIG; the chief (or master) precedes the workers, and parameter servers and
//    evaluators are not ranks. The number of pods is unknown, because evaluators are not counted.
//  PaddleJob: PADDLE_NNODES and the label replica-index; with parameter servers there are two pods
//    of an index.
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "jobs/fields.h"
#include "jobs/kinds.h"
#include "kube/elements.h"

namespace railhead::jobs {
namespace {

using kube::FindPath;
using kube::Json;

constexpr Cause kElastic = {
    "KindHasNoRanks", "Elastic", 1, "no RANK: an elastic $0 assigns no ranks to its pods",
    "start the program with torchrun, which assigns ranks to its processes"};
constexpr Cause kNotAWorker = {"KindHasNoRanks", "NotAWorker", 1,
                               "no RANK: this pod of the $0 is a parameter server or an evaluator",
                               "request RDMA only in the workers"};
constexpr Cause kNoWorkers = {
    "SizeUnknown", "NoWorkers", 1,
    "no RANK: the $0 gives its pods no number of workers, or contradictory numbers",
    "give it at least two workers, or set RANK, WORLD_SIZE and MASTER_ADDR"};
constexpr const Cause* kCausesOfKubeflow[] = {&kElastic, &kNotAWorker, &kNoWorkers};

Rank WithoutRank(const Job& job, const Cause& cause) {
  return {.job = job.name, .missing = {{&cause, {std::string(job.kind->name)}}}};
}

// Returns a rank of which all is known, or none.
Rank CheckedRank(const Job& job, std::optional<int> rank, std::optional<int> world,
                 std::string master) {
  if (!rank || !world || *rank >= *world) return WithoutRank(job, kNoWorkers);
  return {.job = job.name, .rank = rank, .world = world, .master = std::move(master)};
}

bool ReadPyTorchJob(const Json& pod, Job& job) {
  job.index = NumberIn(VariableOf(pod, "PET_NODE_RANK"), 0);
  if (!job.index) job.index = NumberIn(VariableOf(pod, "RANK"), 0);
  if (const std::string nodes = VariableOf(pod, "PET_NNODES"); !nodes.empty()) {
    job.size = NumberIn(nodes, 1);  // nullopt for "1:4"
    return true;
  }
  const std::optional<int> ranks = NumberIn(VariableOf(pod, "WORLD_SIZE"), 1);
  const std::string per_pod = VariableOf(pod, "PET_NPROC_PER_NODE");
  const std::optional<int> divisor = per_pod.empty() ? 1 : NumberIn(per_pod, 1);
  if (ranks && divisor && *ranks % *divisor == 0) job.size = *ranks / *divisor;
  return true;
}

std::optional<Rank> RankInPyTorchJob(const Pod& pod) { return WithoutRank(*pod.job, kElastic); }

bool ReadJaxJob(const Json& pod, Job& job) {
  job.size = NumberIn(VariableOf(pod, "NUM_PROCESSES"), 1);
  job.index = NumberIn(VariableOf(pod, "PROCESS_ID"), 0);
  return true;
}

std::optional<Rank> RankInJaxJob(const Pod& pod) {
  return CheckedRank(*pod.job, pod.job->index, pod.job->size,
                     VariableOf(pod.json, "COORDINATOR_ADDRESS"));
}

// "host" of "host:port", or nothing.
std::string FirstHost(const Json& hosts) {
  if (hosts.empty() || !hosts.front().is_string()) return "";
  const auto& host = hosts.front().get_ref<const std::string&>();
  return host.substr(0, host.rfind(':'));
}

std::optional<Rank> RankInTfJob(const Pod& pod) {
  const std::string role =
      absl::AsciiStrToLower(kube::LabelOf(pod.json, "training.kubeflow.org/replica-type"));
  if (!role.empty() && role != "chief" && role != "master" && role != "worker") {
    return WithoutRank(*pod.job, kNotAWorker);
  }
  const absl::StatusOr<Json> config = kube::ParseJson(VariableOf(pod.json, "TF_CONFIG"));
  const Json* index = config.ok() ? FindPath(*config, {"task", "index"}) : nullptr;
  if (index == nullptr || !index->is_number_integer() || *index < 0 || *index > kMostPods) {
    return WithoutRank(*pod.job, kNoWorkers);
  }
  const std::string type = kube::StringAt(*config, {"task", "type"});
  std::string master;
  std::optional<int> rank;
  int count = 0;
  for (const char* name : {"chief", "master", "worker"}) {
    const Json* hosts = FindPath(*config, {"cluster", name});
    if (hosts == nullptr || !hosts->is_array() || hosts->size() > kMostPods) continue;
    if (master.empty()) master = FirstHost(*hosts);
    if (type == name && *index < hosts->size()) rank = count + index->get<int>();
    count += static_cast<int>(hosts->size());
  }
  return CheckedRank(*pod.job, rank, count, std::move(master));
}

bool HasServers(const Json& pod) {
  return !VariableOf(pod, "PADDLE_TRAINER_NUM").empty() ||
         !VariableOf(pod, "PADDLE_SERVER_NUM").empty();
}

bool ReadPaddleJob(const Json& pod, Job& job) {
  job.size = NumberIn(VariableOf(pod, "PADDLE_NNODES"), 1);
  if (HasServers(pod)) return true;
  job.index = NumberIn(kube::LabelOf(pod, "training.kubeflow.org/replica-index"), 0);
  return true;
}

std::optional<Rank> RankInPaddleJob(const Pod& pod) {
  if (HasServers(pod.json)) return WithoutRank(*pod.job, kNotAWorker);
  return CheckedRank(*pod.job, pod.job->index, pod.job->size,
                     absl::StrCat(pod.job->name, "-worker-0"));
}

constexpr Kind KubeflowKind(absl::string_view name, decltype(Kind::identity) identity,
                            decltype(Kind::part) part, decltype(Kind::rank) rank) {
  return {.name = name,
          .identity = identity,
          .part = part,
          .rank = rank,
          .causes = kCausesOfKubeflow,
          .pods = Kind::Pods::kOneProgram,
          .eviction = Kind::Eviction::kMadeAgain};
}

std::optional<Identity> JobBy(const Json& pod, absl::string_view controller) {
  std::string name = kube::LabelOf(pod, "training.kubeflow.org/job-name");
  const std::string label = kube::LabelOf(pod, "training.kubeflow.org/operator-name");
  if (name.empty() || label != controller) return std::nullopt;
  return Identity{.name = std::move(name)};
}

}  // namespace

constexpr Kind kPyTorchJob = KubeflowKind(
    "PyTorchJob", [](const Json& pod) { return JobBy(pod, "pytorchjob-controller"); },
    ReadPyTorchJob, RankInPyTorchJob);
constexpr Kind kXgBoostJob = KubeflowKind(
    "XGBoostJob", [](const Json& pod) { return JobBy(pod, "xgboostjob-controller"); },
    ReadPyTorchJob, RankInPyTorchJob);
constexpr Kind kJaxJob = KubeflowKind(
    "JAXJob", [](const Json& pod) { return JobBy(pod, "jaxjob-controller"); }, ReadJaxJob,
    RankInJaxJob);
constexpr Kind kTfJob = KubeflowKind(
    "TFJob", [](const Json& pod) { return JobBy(pod, "tfjob-controller"); }, nullptr, RankInTfJob);
constexpr Kind kPaddleJob = KubeflowKind(
    "PaddleJob", [](const Json& pod) { return JobBy(pod, "paddlejob-controller"); }, ReadPaddleJob,
    RankInPaddleJob);

}  // namespace railhead::jobs
