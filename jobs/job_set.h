// SPDX-License-Identifier: Apache-2.0
//
// Jobs of a JobSet's replicatedJob, which form one job. Pure.
#ifndef RAILHEAD_JOBS_JOB_SET_H_
#define RAILHEAD_JOBS_JOB_SET_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "jobs/kind.h"
#include "kube/json.h"

namespace railhead::jobs {

// Label of a Job and its pods: number of Jobs in the replicatedJob.
inline constexpr char kReplicatedJobReplicas[] = "jobset.sigs.k8s.io/replicatedjob-replicas";

// Fix by which a pod's eviction is not a failure of its Job.
inline constexpr absl::string_view kIgnoreDisruptions =
    "give its Job a spec.podFailurePolicy with action Ignore for the condition DisruptionTarget";

// Returns the number of Jobs that form one job with this one: those of its replicatedJob, or 1.
// `object`: a Job or a pod with JobSet's labels. `pod`: the pod, or the Job's template.
int JobsTogether(const kube::Json& object, const kube::Json& pod);

// Returns the rank of a pod among the pods of the Jobs that form one job: pods of Jobs with a
// smaller job-index come first. Address: JOBSET-REPLICATEDJOB-0-0.SUBDOMAIN. `rank`: in its own
// Job.
Rank RankInReplicatedJob(const Pod& pod, Rank rank);

// Returns what is wrong with the annotation railhead.io/rank-group; nullopt: nothing.
std::optional<NoRank> WrongRankGroup(const kube::Json& pod);

}  // namespace railhead::jobs

#endif  // RAILHEAD_JOBS_JOB_SET_H_
