// SPDX-License-Identifier: Apache-2.0
//
// JobSet, and TrainJob, which creates one: a replicatedJob, by the labels jobset.sigs.k8s.io/* on
// Jobs and pods. Only the Job contains its number of pods, so the size is in the annotation
// railhead.io/gang-size of its template (admission/gang_gate.h). Ranks are those of its Jobs.
#include "jobs/job_set.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "jobs/fields.h"
#include "jobs/kinds.h"
#include "kube/elements.h"

namespace railhead::jobs {
namespace {

using kube::Json;

constexpr char kJobSetName[] = "jobset.sigs.k8s.io/jobset-name";
constexpr char kJobSetUid[] = "jobset.sigs.k8s.io/jobset-uid";
constexpr char kReplicatedJobName[] = "jobset.sigs.k8s.io/replicatedjob-name";
constexpr char kJobIndex[] = "jobset.sigs.k8s.io/job-index";
constexpr absl::string_view kTopologiesOfJobSet[] = {"alpha.jobset.sigs.k8s.io/exclusive-topology"};

constexpr Cause kJobsContradict = {
    "IndexInvalid", "JobsContradict", 3,
    "no RANK: label jobset.sigs.k8s.io/job-index is '$0', there are $1 Jobs, and annotation "
    "railhead.io/world-size is '$2'",
    "recreate the JobSet, or give each Job its own ranks with the annotation "
    "railhead.io/rank-group: job"};
constexpr Cause kRankGroupUnknown = {
    "GroupUnknown", "RankGroup", 1,
    "metadata.annotations[railhead.io/rank-group] is '$0' and is treated as replicatedjob",
    "set it to replicatedjob or job"};
constexpr const Cause* kCausesOfJobSet[] = {&kJobsContradict, &kRankGroupUnknown};

// Another JobSet of the same name has another uid; older controllers do not write it.
std::optional<Identity> JobSetOf(const Json& pod) {
  std::string name = kube::LabelOf(pod, kJobSetName);
  if (name.empty()) return std::nullopt;
  return Identity{std::move(name), kube::LabelOf(pod, kJobSetUid), true};
}

std::optional<int> IndexInReplicatedJob(const Json& pod, int pods, int index) {
  const std::optional<int> jobs = NumberIn(kube::LabelOf(pod, kReplicatedJobReplicas), 1);
  const std::optional<int> job = NumberIn(kube::LabelOf(pod, kJobIndex), 0);
  if (!jobs || !job || *job >= *jobs || pods < *jobs || pods % *jobs != 0) return std::nullopt;
  const int64_t all = int64_t{*job} * (pods / *jobs) + index;
  return all <= kMostPods ? std::optional<int>(static_cast<int>(all)) : std::nullopt;
}

bool ReadReplicatedJob(const Json& pod, Job& job) {
  job.part = absl::StrCat(job.whole, "/", kube::LabelOf(pod, kReplicatedJobName));
  job.attempt = kube::LabelOf(pod, "jobset.sigs.k8s.io/restart-attempt");
  job.size = NumberIn(kube::AnnotationOf(pod, kGangSize), 1);
  const std::optional<int> index = NumberIn(kube::AnnotationOf(pod, kCompletionIndex), 0);
  if (job.size && index) job.index = IndexInReplicatedJob(pod, *job.size, *index);
  return true;
}

}  // namespace

int JobsTogether(const Json& object, const Json& pod) {
  const bool each_alone = kube::AnnotationOf(pod, kRankGroup) == "job";
  if (each_alone || kube::LabelOf(object, kJobSetName).empty()) return 1;
  return NumberIn(kube::LabelOf(object, kReplicatedJobReplicas), 1, kMostCount).value_or(1);
}

Rank RankInReplicatedJob(const Pod& pod, Rank rank) {
  const std::string world = kube::AnnotationOf(pod.json, kWorldSize);
  rank.world = NumberIn(world, 1, kMostCount);
  rank.rank = IndexInReplicatedJob(pod.json, rank.world.value_or(0), *rank.index);
  if (!rank.rank) {
    rank.missing.push_back({&kJobsContradict,
                            {kube::LabelOf(pod.json, kJobIndex),
                             absl::StrCat(JobsTogether(pod.json, pod.json)), world}});
    return rank;
  }
  rank.set_uid = kube::LabelOf(pod.json, kJobSetUid);
  rank.job = absl::StrCat(kube::LabelOf(pod.json, kJobSetName), "-",
                          kube::LabelOf(pod.json, kReplicatedJobName));
  rank.master = HostOf(rank.job + "-0-0", pod.json);
  TakeSize(pod, kNoStamp, rank);
  return rank;
}

std::optional<NoRank> WrongRankGroup(const Json& pod) {
  const std::string group = kube::AnnotationOf(pod, kRankGroup);
  if (group.empty() || group == "job" || group == "replicatedjob") return std::nullopt;
  return NoRank{&kRankGroupUnknown, {group}};
}

constexpr Kind kJobSet = {
    .name = "JobSet",
    .identity = JobSetOf,
    .part = ReadReplicatedJob,
    .causes = kCausesOfJobSet,
    .pods = Kind::Pods::kOneProgram,
    // All Jobs of a replicatedJob have it.
    .one_template = true,
    // A TrainJob with an MPI runtime has launchers.
    .first_worker = "-node-0-0",
    .evictable = kIgnoreDisruptions,
    .parts_in_order =
        "if a replicatedJob is created only when another one is ready (startupPolicy, dependsOn)",
    .exclusive_topology = kTopologiesOfJobSet,
};

}  // namespace railhead::jobs
