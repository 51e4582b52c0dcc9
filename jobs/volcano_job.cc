// SPDX-License-Identifier: Apache-2.0
//
// Volcano's Job, of one task. Its plugin env sets the pod's index in the task, VC_TASK_INDEX; the
// plugin svc sets the size of each task, VC_TASK_NUM, from a ConfigMap; without it the annotation
// railhead.io/world-size counts. Address: JOB-TASK-0.SUBDOMAIN.
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "jobs/fields.h"
#include "jobs/kinds.h"
#include "kube/elements.h"

namespace railhead::jobs {
namespace {

using kube::Json;

constexpr char kVolcanoName[] = "volcano.sh/job-name";

constexpr Cause kNoTaskIndex = {"NoIndex", "NoTaskIndex", 0, "no RANK: VC_TASK_INDEX is missing",
                                "add the plugins env and svc to spec.plugins of the Volcano Job"};
constexpr Cause kSeveralTasks = {
    "NoIndex", "SeveralTasks", 0,
    "no RANK: the Volcano Job has several tasks, whose order is unknown",
    "add the plugin pytorch to spec.plugins, or use a single task"};
constexpr Cause kNoTaskSize = {
    "SizeUnknown", "NoTaskSize", 0,
    "no RANK or WORLD_SIZE: annotation railhead.io/world-size is missing",
    "add the plugin svc to spec.plugins of the Volcano Job, or annotate the task's template with "
    "railhead.io/world-size"};
constexpr const Cause* kCausesOfVolcano[] = {&kNoTaskIndex, &kSeveralTasks, &kNoTaskSize,
                                             &kNotAboveRank};

// Returns the sources of the tasks' sizes, by the name of the variable.
std::map<std::string, Json> SizesOfTasks(const Json& pod) {
  std::map<std::string, Json> sizes;
  for (const Json& container : kube::ElementsAt(pod, {"spec", "containers"})) {
    for (const Json& variable : kube::ElementsAt(container, {"env"})) {
      const std::string name = kube::StringAt(variable, {"name"});
      const Json* source = kube::Find(variable, "valueFrom");
      if (source != nullptr && kube::Find(*source, "configMapKeyRef") != nullptr &&
          absl::StartsWith(name, "VC_") && absl::EndsWith(name, "_NUM")) {
        sizes[name] = *source;
      }
    }
  }
  return sizes;
}

std::optional<Rank> RankInTask(const Pod& pod) {
  Rank rank = {.job = kube::AnnotationOf(pod.json, kVolcanoName)};
  if (rank.job.empty()) rank.job = kube::LabelOf(pod.json, kVolcanoName);
  if (rank.job.empty() && !HasAnnotation(pod.json, kVolcanoName)) return std::nullopt;
  const std::optional<int> index = NumberIn(VariableOf(pod.json, "VC_TASK_INDEX"), 0);
  const std::map<std::string, Json> sizes = SizesOfTasks(pod.json);
  if (!index || sizes.size() > 1) {
    rank.missing.push_back({index ? &kSeveralTasks : &kNoTaskIndex});
    return rank;
  }
  rank.rank = index;
  const std::string task = kube::AnnotationOf(pod.json, "volcano.sh/task-spec");
  rank.master = HostOf(task.empty() ? "" : absl::StrCat(rank.job, "-", task, "-0"), pod.json);
  if (!sizes.empty()) {
    rank.world_source = sizes.begin()->second;
  } else {
    TakeSize(pod, kNoTaskSize, rank);
  }
  return rank;
}

}  // namespace

constexpr Kind kVolcanoJob = {.name = "Job",
                              .api_group = "batch.volcano.sh/",
                              .rank = RankInTask,
                              .causes = kCausesOfVolcano};

}  // namespace railhead::jobs
