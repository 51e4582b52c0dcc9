// SPDX-License-Identifier: Apache-2.0
//
// A pod's rank in its job, from what the job's controller writes into the pod: one row per kind of
// controller. Pure.
#ifndef RAILHEAD_OPERATOR_JOBS_JOB_RANK_H_
#define RAILHEAD_OPERATOR_JOBS_JOB_RANK_H_

#include <optional>
#include <string>
#include <vector>

#include "kube/json.h"
#include "operator/objects/annotations.h"
#include "operator/objects/not_done.h"

namespace railhead::op {

// Annotation of a Job's template: number of its pods, which becomes WORLD_SIZE.
inline constexpr char kWorldSize[] = "railhead.io/world-size";

// Annotation of a pod or a Job's template: which Jobs of a JobSet's replicatedJob form one job.
// "replicatedjob" (the default): all of them; "job": each on its own.
inline constexpr char kRankGroup[] = "railhead.io/rank-group";

// Label of a Job and its pods: number of Jobs in the replicatedJob.
inline constexpr char kReplicatedJobReplicas[] = "jobset.sigs.k8s.io/replicatedjob-replicas";

// A pod's place in its job. Unknown values are absent or empty.
struct JobRank {
  std::string job;           // RAILHEAD_JOB: equal in all pods of the job
  std::optional<int> rank;   // of the pod, from 0
  std::optional<int> world;  // number of pods of the job
  std::string master;        // host name of the pod with rank 0
  // If the pod's containers read the number of pods from another object: the valueFrom of that
  // variable. Else null.
  kube::Json world_source;
  std::vector<NotDoneNote> not_done;  // expected but unknown values, with causes
};

// Determines the rank by the row of the pod's kind; job_rank.cc has the table with the sources.
// `annotations`: of the pod.
JobRank JobRankOf(const kube::Json& pod, const Annotations& annotations);

// Returns the number of Jobs that form one job with this one: those of its replicatedJob, or 1.
// `object`: a Job or a pod with JobSet's labels. `annotations`: of the pod, or of the Job's
// template.
int JobsTogether(const kube::Json& object, const Annotations& annotations);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_JOBS_JOB_RANK_H_
