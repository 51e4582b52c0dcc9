// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/job_rank.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "operator/admission/job_stamp.h"
#include "operator/admission/quoted.h"
#include "operator/gangs/names.h"
#include "operator/gangs/workload.h"

namespace railhead::op {
namespace {

using kube::FindPath;
using kube::Json;
using kube::StringAt;

constexpr char kJobNameLabel[] = "batch.kubernetes.io/job-name";
constexpr char kJobSetName[] = "jobset.sigs.k8s.io/jobset-name";
constexpr char kReplicatedJobName[] = "jobset.sigs.k8s.io/replicatedjob-name";
constexpr char kJobIndex[] = "jobset.sigs.k8s.io/job-index";

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
  const Json* owners = FindPath(pod, {"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array()) return "";
  for (const Json& owner : *owners) {
    if (StringAt(owner, {"kind"}) == "Job") return StringAt(owner, {"name"});
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

// The pods of an Indexed Job, alone or one of several of a replicatedJob.
JobRank RankOfJob(const Json& pod, const Annotations& annotations) {
  JobRank rank;
  rank.job = JobName(pod);
  std::string first = rank.job.empty() ? "" : rank.job + "-0";
  const int index = ParseCount(ValueAt(annotations, gangs::kCompletionIndex));
  if (index < 0) {
    rank.trouble =
        absl::StrCat("no RANK: annotation ", gangs::kCompletionIndex, " is not a number");
    return rank;
  }
  const int world = ParseCount(ValueAt(annotations, kWorldSize));
  int64_t before = 0;  // pods of Jobs with a smaller index
  if (const int jobs = JobsTogether(pod, annotations); jobs > 1) {
    const int job = ParseCount(Label(pod, kJobIndex));
    if (job < 0 || job >= jobs || world < jobs || world % jobs != 0) {
      rank.trouble = absl::StrCat(
          "no RANK: label ", kJobIndex, " is ", Quoted(Label(pod, kJobIndex)), ", there are ", jobs,
          " Jobs, and annotation ", kWorldSize, " is ", Quoted(ValueAt(annotations, kWorldSize)),
          "; each Job alone has ranks with the annotation ", kRankGroup, ": job");
      return rank;
    }
    before = int64_t{job} * (world / jobs);
    const std::string group =
        absl::StrCat(Label(pod, kJobSetName), "-", Label(pod, kReplicatedJobName));
    rank.job = group;
    first = group + "-0-0";
  }
  rank.rank = static_cast<int>(before + index);
  rank.master = HostOf(first, pod);
  if (world > *rank.rank) {
    rank.world = world;
  } else {
    rank.trouble = absl::StrCat(
        "no WORLD_SIZE: annotation ", kWorldSize,
        annotations.contains(kWorldSize)
            ? " does not fit the rank"
            : " is missing; the Job was created while the operator was away: create it again");
  }
  return rank;
}

JobRank RankOfGroup(const Json& pod, const gangs::Workload& group) {
  JobRank rank;
  const std::string leader =
      absl::StrCat(group.name, "-", Label(pod, "leaderworkerset.sigs.k8s.io/group-index"));
  rank.job = leader;
  rank.rank = group.index;
  if (group.size && group.index && *group.index < *group.size) rank.world = group.size;
  rank.master = HostOf(leader, pod);
  return rank;
}

}  // namespace

int JobsTogether(const Json& object, const Annotations& annotations) {
  if (ValueAt(annotations, kRankGroup) == "job") return 1;
  const int jobs = ParseCount(Label(object, kReplicatedJobReplicas));
  return jobs > 1 && !Label(object, kJobSetName).empty() ? jobs : 1;
}

JobRank JobRankOf(const Json& pod, const Annotations& annotations) {
  JobRank rank;
  const std::optional<gangs::Workload> workload = gangs::WorkloadOf(pod);
  if (annotations.contains(gangs::kCompletionIndex)) {
    rank = RankOfJob(pod, annotations);
  } else if (workload && workload->kind == "LeaderWorkerSet") {
    rank = RankOfGroup(pod, *workload);
  } else {
    rank.job = JobName(pod);
  }
  if (const std::string group = ValueAt(annotations, kRankGroup);
      rank.trouble.empty() && !group.empty() && group != "job" && group != "replicatedjob") {
    rank.trouble = absl::StrCat("metadata.annotations[", kRankGroup, "]: ", Quoted(group),
                                " must be replicatedjob or job");
  }
  return rank;
}

}  // namespace railhead::op
