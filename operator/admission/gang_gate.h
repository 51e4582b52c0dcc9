// SPDX-License-Identifier: Apache-2.0
//
// Admission for gangs: adds a scheduling gate to a pod that requests to start with its gang, and
// the gang's size to a Job's template. Pure. A pod without a request is never gated. A pod whose
// request cannot be met starts at once, with a warning.
#ifndef RAILHEAD_OPERATOR_ADMISSION_GANG_GATE_H_
#define RAILHEAD_OPERATOR_ADMISSION_GANG_GATE_H_

#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "jobs/kind.h"
#include "kube/json.h"
#include "operator/objects/annotations.h"
#include "operator/objects/draft.h"
#include "operator/objects/not_done.h"

namespace railhead::op {

// Kinds of jobs (jobs/job.h) whose pods wait for each other without a request.
using GangKinds = std::set<std::string>;

// Adds the gang's size to the annotations of a pod that waits for its gang, by request or by kind,
// if its kind gives the size.
void AddGangSize(const kube::Json& pod, const GangKinds& kinds, Annotations& annotations);

// Returns the size of the gang of a pod whose rank is unknown until the gang has its nodes: no
// index gives it, or kube-scheduler places the pod and ignores its index. Empty for other pods.
// `annotations`: of the pod, with the size. `rank`: from its kind of job.
std::string SizeOfRankedGang(const kube::Json& pod, const GangKinds& kinds,
                             const Annotations& annotations, const jobs::Rank& rank);

// Adds the gate to a pod that gets one, and the label that its kind implies. `annotations`: of the
// pod. `refused`: why a pod that requests a gate, or whose kind does, gets none. A pod of a
// spec.schedulingGroup gets none, since kube-scheduler makes it wait. Returns InvalidArgument if
// its schedulingGates is not a list.
absl::Status AddGangGate(const GangKinds& kinds, const Annotations& annotations,
                         std::optional<NotDoneNote>& refused, Draft& pod);

// Sets `refused` if gangs are off. Always returns OK.
absl::Status NoteGangsAreOff(const kube::Json& pod, std::optional<NotDoneNote>& refused);

// Adds the gang's size to the annotations of a Job's template that requests a gang by its label,
// else by the Job's label, else by kind. Also marks evictions as not being failures, if the Job
// specifies that. `parallelism`: maximum number of pods of the Job at a time. All similar Jobs of a
// JobSet are one gang.
void StampGangSize(const GangKinds& kinds, int parallelism, Annotations& annotations, Draft& job);

// Adds the Job's label, or the one its kind implies, to a template without one.
void AddGangLabel(const GangKinds& kinds, Draft& job);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_GANG_GATE_H_
