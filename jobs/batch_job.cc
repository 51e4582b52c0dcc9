// SPDX-License-Identifier: Apache-2.0
//
// Kubernetes' Job. Indexed, also as a Job of a JobSet or TrainJob: index by the annotation
// job-completion-index, size by the annotation railhead.io/world-size (admission/job_stamp.h),
// address JOB-0.SUBDOMAIN. Pods of another Job have no ranks.
#include "absl/strings/str_cat.h"
#include "jobs/fields.h"
#include "jobs/job_set.h"
#include "jobs/kinds.h"
#include "jobs/mpirun.h"
#include "kube/elements.h"

namespace railhead::jobs {
namespace {

constexpr Cause kIndexNoNumber = {
    "IndexInvalid", "IndexNoNumber", 1,
    "no RANK: annotation batch.kubernetes.io/job-completion-index is '$0', which is not a number",
    "let the Job controller set it"};
constexpr Cause kNotIndexed = {"NoIndex", "NotIndexed", 0, "no RANK: the Job is not Indexed",
                               "set spec.completionMode to Indexed"};
constexpr const Cause* kIndexedCauses[] = {&kIndexNoNumber, &kByMpirun, &kNoStamp, &kNotAboveRank};
constexpr const Cause* kUnindexedCauses[] = {&kNotIndexed};

std::optional<Rank> RankInIndexedJob(const Pod& pod) {
  if (!HasAnnotation(pod.json, kCompletionIndex)) return std::nullopt;
  const kube::Json* spec = kube::Find(pod.json, "spec");
  if (spec != nullptr && IsStartedByMpirun(*spec)) return RankByMpirun(pod);
  Rank rank = {.job = JobNameOf(pod)};
  const std::string text = kube::AnnotationOf(pod.json, kCompletionIndex);
  rank.index = NumberIn(text, 0, kMostCount);
  if (!rank.index) {
    rank.missing.push_back({&kIndexNoNumber, {text}});
    return rank;
  }
  rank.rank = rank.index;
  if (JobsTogether(pod.json, pod.json) > 1) return RankInReplicatedJob(pod, std::move(rank));
  rank.master = HostOf(rank.job.empty() ? "" : rank.job + "-0", pod.json);
  TakeSize(pod, kNoStamp, rank);
  return rank;
}

std::optional<Rank> RankInUnindexedJob(const Pod& pod) {
  Rank rank = {.job = JobNameOf(pod)};
  if (rank.job.empty()) return std::nullopt;
  rank.missing.push_back({&kNotIndexed});
  return rank;
}

}  // namespace

// Any deleted pod counts towards backoffLimit, unless the Job's podFailurePolicy ignores
// disruptions.
constexpr Kind kBatchJob = {
    .name = "Job",
    .rank = RankInIndexedJob,
    .causes = kIndexedCauses,
    .pods = Kind::Pods::kOneProgramIfIndexed,
    .evictable = kIgnoreDisruptions,
};

// Its pods may be those of another kind's controller, so other kinds go before it.
constexpr Kind kUnindexedJob = {
    .name = "Job", .rank = RankInUnindexedJob, .causes = kUnindexedCauses};

}  // namespace railhead::jobs
