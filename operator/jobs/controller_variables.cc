// SPDX-License-Identifier: Apache-2.0
#include "operator/jobs/controller_variables.h"

#include <map>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kube/elements.h"
#include "operator/objects/names.h"

namespace railhead::op {
namespace {

using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::StringAt;

std::optional<int> CountIn(const std::string& text, int min) {
  int number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < min || number > gangs::kMostPods) {
    return std::nullopt;
  }
  return number;
}

// Nothing, or a place that does not contradict itself.
KubeflowRank Checked(KubeflowRank found) {
  const bool known = found.rank && found.world && *found.rank < *found.world;
  return known ? found : KubeflowRank{.is_rank = found.is_rank};
}

KubeflowRank JaxRank(const Json& pod) {
  return Checked({.rank = CountIn(gangs::VariableOf(pod, "PROCESS_ID"), 0),
                  .world = CountIn(gangs::VariableOf(pod, "NUM_PROCESSES"), 1),
                  .master = gangs::VariableOf(pod, "COORDINATOR_ADDRESS")});
}

// "host:port", or nothing.
std::string FirstHost(const Json& hosts) {
  if (hosts.empty() || !hosts.front().is_string()) return "";
  const auto& host = hosts.front().get_ref<const std::string&>();
  return host.substr(0, host.rfind(':'));
}

KubeflowRank TensorFlowRank(const Json& pod) {
  KubeflowRank found;
  const absl::StatusOr<Json> config = kube::ParseJson(gangs::VariableOf(pod, "TF_CONFIG"));
  const std::string role = absl::AsciiStrToLower(
      StringAt(pod, {"metadata", "labels", "training.kubeflow.org/replica-type"}));
  found.is_rank = role.empty() || role == "chief" || role == "master" || role == "worker";
  if (!config.ok() || !found.is_rank) return found;
  const Json* index = FindPath(*config, {"task", "index"});
  if (index == nullptr || !index->is_number_integer() || *index < 0 || *index > gangs::kMostPods) {
    return found;
  }
  const std::string type = StringAt(*config, {"task", "type"});
  int count = 0;
  for (const char* name : {"chief", "master", "worker"}) {
    const Json* hosts = FindPath(*config, {"cluster", name});
    if (hosts == nullptr || !hosts->is_array() || hosts->size() > gangs::kMostPods) continue;
    if (found.master.empty()) found.master = FirstHost(*hosts);
    if (type == name && *index < hosts->size()) found.rank = count + index->get<int>();
    count += static_cast<int>(hosts->size());
  }
  found.world = count;
  return Checked(std::move(found));
}

KubeflowRank PaddleRank(const Json& pod, const std::string& job) {
  // With parameter servers a pod is one of its kind, and not of all.
  if (!gangs::VariableOf(pod, "PADDLE_TRAINER_NUM").empty() ||
      !gangs::VariableOf(pod, "PADDLE_SERVER_NUM").empty()) {
    return {.is_rank = false};
  }
  return Checked(
      {.rank =
           CountIn(StringAt(pod, {"metadata", "labels", "training.kubeflow.org/replica-index"}), 0),
       .world = CountIn(gangs::VariableOf(pod, "PADDLE_NNODES"), 1),
       .master = absl::StrCat(job, "-worker-0")});
}

}  // namespace

KubeflowRank KubeflowRankOf(const Json& pod, const gangs::Workload& job) {
  if (job.kind == "JAXJob") return JaxRank(pod);
  if (job.kind == "TFJob") return TensorFlowRank(pod);
  if (job.kind == "PaddleJob") return PaddleRank(pod, job.name);
  return {};
}

VolcanoTask VolcanoTaskOf(const Json& pod) {
  VolcanoTask task;
  task.index = CountIn(gangs::VariableOf(pod, "VC_TASK_INDEX"), 0);
  std::map<std::string, Json> sizes;  // of tasks, by the name of the variable
  for (const Json& container : kube::ElementsAt(pod, {"spec", "containers"})) {
    for (const Json& variable : kube::ElementsAt(container, {"env"})) {
      const std::string name = StringAt(variable, {"name"});
      const Json* source = Find(variable, "valueFrom");
      if (source == nullptr || FindPath(*source, {"configMapKeyRef"}) == nullptr ||
          !absl::StartsWith(name, "VC_") || !absl::EndsWith(name, "_NUM")) {
        continue;
      }
      sizes[name] = *source;
    }
  }
  task.tasks = static_cast<int>(sizes.size());
  if (task.tasks == 1) task.size_source = sizes.begin()->second;
  return task;
}

}  // namespace railhead::op
