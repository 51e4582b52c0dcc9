// SPDX-License-Identifier: Apache-2.0
//
// The job of a pod, from its fields, for all kinds. Agent, operator and command line use these
// functions, so all of them name the same job for a pod. Pods are untrusted input: malformed fields
// count as absent. Pure.
#ifndef RAILHEAD_JOBS_JOB_H_
#define RAILHEAD_JOBS_JOB_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jobs/kind.h"
#include "kube/json.h"

namespace railhead::jobs {

// Returns what identifies the job of a pod inside its namespace; the first that there is of:
// - the annotation railhead.io/job
// - the job that its labels name, if its pods have different controllers (JobSet, LeaderWorkerSet,
//   MPIJob)
// - the uid of the controller, unless that makes pods that are not one job (ReplicaSet, DaemonSet)
// - the label railhead.io/gang
// NotFound, with the reason, for a pod that belongs to no job. Secrets derive from the text, so it
// never changes for a kind.
absl::StatusOr<std::string> IdentityOf(const kube::Json& pod);

// Returns the job of a pod, or of its template; nullopt if its owner is all that is known.
std::optional<Job> JobOf(const kube::Json& pod);

// Determines the rank by what the controller writes into the pod.
Rank RankOf(const kube::Json& pod);

// Returns the kind of a controller, also of none and of an unknown one.
const Kind& KindOf(const Owner& controller);

// Returns the kinds that JobOf knows, and Job, where each pod is in its direct owner's gang.
std::vector<std::string> KindNames();

// Returns null if no kind has such a cause.
const Cause* CauseOf(absl::string_view word);

// Returns the key of a part whose pods may have several templates, one of which may request no
// RDMA; equal for all pods of one attempt. Empty if all its pods are identical.
std::string PartOfSeveralTemplates(const Job& job);

// Returns the first annotation of Kind::exclusive_topology that the pod has; empty: none.
std::string ExclusiveTopologyOf(const kube::Json& pod);

// Returns the value of the first label of Kind::group_labels that the pod has; empty: none.
std::string GroupOf(const kube::Json& pod);

// Returns whether kube-scheduler places the pod with its PodGroup, so that the operator does not.
bool IsInSchedulingGroup(const kube::Json& pod);

}  // namespace railhead::jobs

#endif  // RAILHEAD_JOBS_JOB_H_
