// SPDX-License-Identifier: Apache-2.0
#include "operator/jobs/job_rank.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kube/elements.h"
#include "operator/jobs/controller_variables.h"
#include "operator/jobs/mpirun.h"
#include "operator/jobs/workload.h"
#include "operator/objects/names.h"
#include "operator/objects/object_name.h"

namespace railhead::op {
namespace {

using gangs::Workload;
using kube::Find;
using kube::Json;
using kube::StringAt;

constexpr char kJobNameLabel[] = "batch.kubernetes.io/job-name";
constexpr char kJobSetName[] = "jobset.sigs.k8s.io/jobset-name";
constexpr char kReplicatedJobName[] = "jobset.sigs.k8s.io/replicatedjob-name";
constexpr char kJobIndex[] = "jobset.sigs.k8s.io/job-index";
constexpr char kPodIndex[] = "apps.kubernetes.io/pod-index";
constexpr char kVolcanoJob[] = "volcano.sh/job-name";
constexpr char kVolcanoTask[] = "volcano.sh/task-spec";

// All inputs of a row of the table.
struct Facts {
  const Json& pod;
  const Annotations& annotations;
  std::string owner_kind;  // of the controller, or of the first owner; empty: none
  std::string owner_name;
  std::optional<Workload> workload;
};

// A whole number without sign, as Kubernetes writes its own; -1 for anything else.
int ParseCount(const std::string& text) {
  int value = 0;
  if (text.empty() || text.size() > 9 ||
      text.find_first_not_of("0123456789") != std::string::npos ||
      !absl::SimpleAtoi(text, &value)) {
    return -1;
  }
  return value;
}

std::string JobName(const Json& pod) {
  std::string label = StringAt(pod, {"metadata", "labels", kJobNameLabel});
  if (!label.empty()) return label;
  for (const Json& owner : kube::ElementsAt(pod, {"metadata", "ownerReferences"})) {
    if (StringAt(owner, {"kind"}) != "Job") continue;
    std::string name = StringAt(owner, {"name"});  // any text: the API server does not check it
    if (IsObjectName(name)) return name;
  }
  return "";
}

std::string Label(const Json& object, const char* name) {
  return StringAt(object, {"metadata", "labels", name});
}

std::string ValueAt(const Annotations& annotations, const char* name) {
  const auto found = annotations.find(name);
  return found == annotations.end() ? "" : found->second;
}

std::string HostOf(const std::string& pod, const Json& of) {
  const std::string subdomain = StringAt(of, {"spec", "subdomain"});
  return pod.empty() || subdomain.empty() ? "" : absl::StrCat(pod, ".", subdomain);
}

// Takes the number of pods from the annotation of the pod. `missing`: the cause if there is none.
void TakeSize(const Facts& facts, Cause missing, JobRank& rank) {
  const auto stamp = facts.annotations.find(kWorldSize);
  if (stamp == facts.annotations.end()) {
    rank.not_done.push_back(NoteOf(NotDone::kSizeUnknown, missing));
    return;
  }
  const int world = ParseCount(stamp->second);
  if (world > rank.rank.value_or(0)) {
    rank.world = world;
  } else {
    rank.not_done.push_back(NoteOf(NotDone::kSizeInvalid, Cause::kNotAboveRank,
                                   {stamp->second, absl::StrCat(rank.rank.value_or(0))}));
  }
}

// The pods of an Indexed Job, alone or one of several of a replicatedJob.
JobRank RankOfJob(const Facts& facts) {
  JobRank rank;
  rank.job = JobName(facts.pod);
  std::string first = rank.job.empty() ? "" : rank.job + "-0";
  const std::string text = ValueAt(facts.annotations, gangs::kCompletionIndex);
  const int index = ParseCount(text);
  if (index < 0) {
    rank.not_done.push_back(NoteOf(NotDone::kIndexInvalid, Cause::kIndexNoNumber, {text}));
    return rank;
  }
  rank.rank = index;
  if (const int jobs = JobsTogether(facts.pod, facts.annotations); jobs > 1) {
    const std::string world = ValueAt(facts.annotations, kWorldSize);
    rank.rank = gangs::IndexInReplicatedJob(facts.pod, ParseCount(world), index);
    if (!rank.rank) {
      rank.not_done.push_back(NoteOf(NotDone::kIndexInvalid, Cause::kJobsContradict,
                                     {Label(facts.pod, kJobIndex), absl::StrCat(jobs), world}));
      return rank;
    }
    rank.job =
        absl::StrCat(Label(facts.pod, kJobSetName), "-", Label(facts.pod, kReplicatedJobName));
    first = rank.job + "-0-0";
  }
  rank.master = HostOf(first, facts.pod);
  TakeSize(facts, Cause::kNoStamp, rank);
  return rank;
}

JobRank RankOfGroup(const Facts& facts) {
  const Workload& group = *facts.workload;
  JobRank rank;
  const std::string leader =
      absl::StrCat(group.name, "-", Label(facts.pod, "leaderworkerset.sigs.k8s.io/group-index"));
  rank.job = leader;
  rank.rank = group.index;
  rank.master = HostOf(leader, facts.pod);
  if (!group.index || !group.size) {
    rank.not_done.push_back(NoteOf(NotDone::kSizeUnknown, Cause::kNoGroupSize));
  } else if (*group.index < *group.size) {
    rank.world = group.size;
  } else {
    rank.not_done.push_back(NoteOf(NotDone::kSizeInvalid, Cause::kOutsideGroup,
                                   {absl::StrCat(*group.index), absl::StrCat(*group.size)}));
  }
  return rank;
}

// Kubeflow's training operator sets RANK and the rest in PyTorchJobs and XGBoostJobs itself, unless
// their number of pods may change. Other kinds get variables of other names.
JobRank RankOfKubeflow(const Facts& facts) {
  const Workload& job = *facts.workload;
  JobRank rank;
  rank.job = job.name;
  if (job.kind == "PyTorchJob" || job.kind == "XGBoostJob") {
    rank.not_done.push_back(NoteOf(NotDone::kKindHasNoRanks, Cause::kElastic, {job.kind}));
    return rank;
  }
  KubeflowRank found = KubeflowRankOf(facts.pod, job);
  if (found.rank) {
    rank.rank = found.rank;
    rank.world = found.world;
    rank.master = std::move(found.master);
  } else if (found.is_rank) {
    rank.not_done.push_back(NoteOf(NotDone::kSizeUnknown, Cause::kNoWorkers, {job.kind}));
  } else {
    rank.not_done.push_back(NoteOf(NotDone::kKindHasNoRanks, Cause::kNotAWorker, {job.kind}));
  }
  return rank;
}

JobRank RankOfMpi(const Facts& facts) {
  JobRank rank;
  rank.job = facts.workload ? facts.workload->name : JobName(facts.pod);
  if (facts.annotations.contains(kLauncher)) return rank;
  rank.not_done.push_back(NoteOf(NotDone::kKindHasNoRanks, Cause::kByMpirun));
  return rank;
}

// Volcano's env plugin sets the pod's index in its task, and the svc plugin the task's size.
JobRank RankOfVolcano(const Facts& facts) {
  JobRank rank;
  rank.job = ValueAt(facts.annotations, kVolcanoJob);
  if (rank.job.empty()) rank.job = Label(facts.pod, kVolcanoJob);
  const std::string task = ValueAt(facts.annotations, kVolcanoTask);
  const VolcanoTask found = VolcanoTaskOf(facts.pod);
  if (!found.index) {
    rank.not_done.push_back(NoteOf(NotDone::kNoIndex, Cause::kNoTaskIndex));
    return rank;
  }
  if (found.tasks > 1) {
    rank.not_done.push_back(NoteOf(NotDone::kNoIndex, Cause::kSeveralTasks));
    return rank;
  }
  rank.rank = found.index;
  rank.master = HostOf(task.empty() ? "" : absl::StrCat(rank.job, "-", task, "-0"), facts.pod);
  if (!found.size_source.is_null()) {
    rank.world_source = found.size_source;
  } else {
    TakeSize(facts, Cause::kNoTaskSize, rank);
  }
  return rank;
}

// A StatefulSet serves more often than it trains, so its pods get ranks only if its template gives
// their number, which may change while they run.
JobRank RankOfStatefulSet(const Facts& facts) {
  JobRank rank;
  const std::string text = Label(facts.pod, kPodIndex);
  const int index = ParseCount(text);
  if (!facts.annotations.contains(kWorldSize)) {
    rank.not_done.push_back(NoteOf(NotDone::kNoJob, Cause::kNoNumberOfPods));
    return rank;
  }
  if (index < 0) {
    rank.not_done.push_back(NoteOf(NotDone::kIndexInvalid, Cause::kPodIndexNoNumber, {text}));
    return rank;
  }
  rank.job = facts.owner_name;
  rank.rank = index;
  rank.master = HostOf(rank.job.empty() ? "" : rank.job + "-0", facts.pod);
  TakeSize(facts, Cause::kNoStamp, rank);
  return rank;
}

JobRank RankOfRay(const Facts& /*facts*/) {
  JobRank rank;
  rank.not_done.push_back(NoteOf(NotDone::kKindHasNoRanks, Cause::kByRay));
  return rank;
}

JobRank RankOfArgo(const Facts& /*facts*/) {
  JobRank rank;
  rank.not_done.push_back(NoteOf(NotDone::kKindHasNoRanks, Cause::kWorkflow));
  return rank;
}

JobRank RankOfPodGroup(const Facts& /*facts*/) {
  JobRank rank;
  rank.not_done.push_back(NoteOf(NotDone::kNoIndex, Cause::kPodGroup));
  return rank;
}

JobRank RankOfPlainJob(const Facts& facts) {
  JobRank rank;
  rank.job = JobName(facts.pod);
  rank.not_done.push_back(NoteOf(NotDone::kNoIndex, Cause::kNotIndexed));
  return rank;
}

JobRank RankOfNothing(const Facts& facts) {
  JobRank rank;
  rank.not_done.push_back(facts.owner_kind.empty()
                              ? NoteOf(NotDone::kNoJob, Cause::kNoOwner)
                              : NoteOf(NotDone::kNoJob, Cause::kNoOrder, {facts.owner_kind}));
  return rank;
}

JobRank RankOfUnknown(const Facts& facts) {
  JobRank rank;
  rank.not_done.push_back(NoteOf(NotDone::kKindUnknown, Cause::kKindUnknown, {facts.owner_kind}));
  return rank;
}

bool IsWorkload(const Facts& facts, absl::string_view kind) {
  return facts.workload && facts.workload->kind == kind;
}

struct RankRow {
  bool (*is)(const Facts& facts);
  JobRank (*rank)(const Facts& facts);
};

// In the order in which they are tried. The evidence for each kind is what its controller writes
// into the pods that it makes.
constexpr RankRow kRankRows[] = {
    // MPIJob, and pods of other kinds in which mpirun starts ranks (mpirun.h), as of a TrainJob
    // with
    // an MPI runtime: none; the processes that mpirun starts have ranks.
    {[](const Facts& facts) {
       const Json* spec = Find(facts.pod, "spec");
       return IsWorkload(facts, "MPIJob") || (facts.annotations.contains(gangs::kCompletionIndex) &&
                                              spec != nullptr && IsStartedByMpirun(*spec));
     },
     RankOfMpi},
    // Indexed Job, JobSet, TrainJob. Index: annotation job-completion-index, over the Jobs of a
    // replicatedJob also label job-index. Size: annotation railhead.io/world-size (job_stamp.h).
    // Address: JOB-0.SUBDOMAIN, or JOBSET-REPLICATEDJOB-0-0.SUBDOMAIN.
    {[](const Facts& facts) { return facts.annotations.contains(gangs::kCompletionIndex); },
     RankOfJob},
    // LeaderWorkerSet. Index: label worker-index. Size: annotation size. Address: the leader,
    // SET-GROUP.SUBDOMAIN.
    {[](const Facts& facts) { return IsWorkload(facts, "LeaderWorkerSet"); }, RankOfGroup},
    // PyTorchJob, XGBoostJob: RANK, WORLD_SIZE and MASTER_ADDR by the controller; none of an
    // elastic one. JAXJob, TFJob, PaddleJob: controller_variables.h.
    {[](const Facts& facts) {
       return facts.workload && gangs::IsOfTrainingOperator(facts.workload->kind);
     },
     RankOfKubeflow},
    // Volcano Job of one task. Index: VC_TASK_INDEX. Size: VC_TASK_NUM, or annotation
    // railhead.io/world-size. Address: JOB-TASK-0.SUBDOMAIN.
    {[](const Facts& facts) {
       return facts.annotations.contains(kVolcanoJob) || !Label(facts.pod, kVolcanoJob).empty();
     },
     RankOfVolcano},
    // RayCluster, also of a RayJob or RayService: none.
    {[](const Facts& facts) { return !Label(facts.pod, "ray.io/cluster").empty(); }, RankOfRay},
    // Workflow of Argo: none.
    {[](const Facts& facts) {
       return !Label(facts.pod, "workflows.argoproj.io/workflow").empty() ||
              facts.owner_kind == "Workflow";
     },
     RankOfArgo},
    // StatefulSet. Index: label pod-index. Size: annotation railhead.io/world-size, by the user.
    // Address: SET-0.SUBDOMAIN.
    {[](const Facts& facts) { return facts.owner_kind == "StatefulSet"; }, RankOfStatefulSet},
    // PodGroup: none.
    {[](const Facts& facts) { return IsWorkload(facts, "PodGroup"); }, RankOfPodGroup},
    // Job that is not Indexed: none.
    {[](const Facts& facts) { return !JobName(facts.pod).empty(); }, RankOfPlainJob},
    // No owner, ReplicaSet, DaemonSet, and static pods: none.
    {[](const Facts& facts) {
       return facts.owner_kind.empty() || facts.owner_kind == "ReplicaSet" ||
              facts.owner_kind == "DaemonSet" || facts.owner_kind == "Node";
     },
     RankOfNothing},
    {[](const Facts& /*facts*/) { return true; }, RankOfUnknown},
};

Facts FactsOf(const Json& pod, const Annotations& annotations) {
  Facts facts{pod, annotations, "", "", gangs::WorkloadOf(pod)};
  for (const Json& owner : kube::ElementsAt(pod, {"metadata", "ownerReferences"})) {
    const Json* controls = Find(owner, "controller");
    const bool controller = controls != nullptr && *controls == true;
    if (!controller && !facts.owner_kind.empty()) continue;
    facts.owner_kind = StringAt(owner, {"kind"});
    facts.owner_name = StringAt(owner, {"name"});
    if (!IsObjectName(facts.owner_name)) facts.owner_name.clear();
    if (controller) break;
  }
  return facts;
}

}  // namespace

int JobsTogether(const Json& object, const Annotations& annotations) {
  if (ValueAt(annotations, kRankGroup) == "job") return 1;
  const int jobs = ParseCount(Label(object, kReplicatedJobReplicas));
  return jobs > 1 && !Label(object, kJobSetName).empty() ? jobs : 1;
}

JobRank JobRankOf(const Json& pod, const Annotations& annotations) {
  const Facts facts = FactsOf(pod, annotations);
  const auto* row = std::find_if(std::begin(kRankRows), std::end(kRankRows),
                                 [&](const RankRow& one) { return one.is(facts); });
  JobRank rank = row->rank(facts);
  if (const std::string group = ValueAt(annotations, kRankGroup);
      !group.empty() && group != "job" && group != "replicatedjob") {
    rank.not_done.push_back(NoteOf(NotDone::kGroupUnknown, Cause::kRankGroup, {group}));
  }
  return rank;
}

}  // namespace railhead::op
