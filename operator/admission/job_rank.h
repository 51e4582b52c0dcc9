// SPDX-License-Identifier: Apache-2.0
//
// Which rank of its job a pod is, by what the job's controller writes into it: one row for each
// kind of controller. Pure.
#ifndef RAILHEAD_OPERATOR_ADMISSION_JOB_RANK_H_
#define RAILHEAD_OPERATOR_ADMISSION_JOB_RANK_H_

#include <optional>
#include <string>
#include <vector>

#include "kube/json.h"
#include "operator/admission/annotations.h"
#include "operator/not_done.h"

namespace railhead::op {

// Which Jobs of a JobSet's replicatedJob are one job: "replicatedjob" (all of them, as is the case
// without the annotation) or "job" (each alone). Of a pod, or of the template of its Job.
inline constexpr char kRankGroup[] = "railhead.io/rank-group";

// The label of a Job and its pods with the number of Jobs in its replicatedJob.
inline constexpr char kReplicatedJobReplicas[] = "jobset.sigs.k8s.io/replicatedjob-replicas";

// What is known of a pod's place in its job. What is not known is absent or empty.
struct JobRank {
  std::string job;           // RAILHEAD_JOB: the same in all pods of the job
  std::optional<int> rank;   // of the pod, from 0
  std::optional<int> world;  // how many pods the job has
  std::string master;        // host name of the pod with rank 0
  // Where the number of pods stands in an object that the pod's containers read it from: the
  // valueFrom of their variable. Null otherwise.
  kube::Json world_source;
  std::vector<NotDoneNote> not_done;  // what a user would expect here is not known, and why
};

// By the row of the pod's kind: job_rank.cc has the table, with where each fact is taken from.
// `annotations` are the pod's.
JobRank JobRankOf(const kube::Json& pod, const Annotations& annotations);

// How many Jobs are one job with this one: those of its replicatedJob, or 1. `object` is a Job or a
// pod with JobSet's labels, `annotations` those of the pod, or of the Job's template.
int JobsTogether(const kube::Json& object, const Annotations& annotations);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_JOB_RANK_H_
