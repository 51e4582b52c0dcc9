// SPDX-License-Identifier: Apache-2.0
//
// What admission does for gangs: a pod that asks to start with its gang gets a scheduling gate, and
// a Job's template the gang's size. Pure. A pod that does not ask is never gated, and one that asks
// for what cannot be starts at once, and is told so.
#ifndef RAILHEAD_OPERATOR_ADMISSION_GANG_GATE_H_
#define RAILHEAD_OPERATOR_ADMISSION_GANG_GATE_H_

#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "kube/json.h"
#include "operator/admission/annotations.h"
#include "operator/admission/draft.h"
#include "operator/admission/job_rank.h"
#include "operator/not_done.h"

namespace railhead::op {

// Kinds of jobs (gangs/workload.h) whose pods wait for each other without asking for it.
using GangKinds = std::set<std::string>;

// Adds the size of the gang to the annotations of a pod that asks to wait for it, or whose kind
// does, where its kind says it.
void AddGangSize(const kube::Json& pod, const GangKinds& kinds, Annotations& annotations);

// The size of the gang of a pod whose rank is known when the gang has its nodes: no index gives it,
// or kube-scheduler places the pod and asks for no index. Empty: it is no such pod. `annotations`
// are the pod's, with the size; `rank`: by its kind of job.
std::string SizeOfRankedGang(const kube::Json& pod, const GangKinds& kinds,
                             const Annotations& annotations, const JobRank& rank);

// Adds the gate to a pod that is to have it, and the label that its kind asks for. `annotations`
// are the pod's. `refused`: why a pod that asks for it, or whose kind does, gets none. A pod of a
// spec.schedulingGroup gets none: it waits in kube-scheduler.
// InvalidArgument when its gates are no list.
absl::Status AddGangGate(const GangKinds& kinds, const Annotations& annotations,
                         std::optional<NotDoneNote>& refused, Draft& pod);

// The same where gangs are not served. Always Ok.
absl::Status NoteGangsAreOff(const kube::Json& pod, std::optional<NotDoneNote>& refused);

// Adds the size of the gang to the annotations of a Job's template, whose label, or else the Job's
// or its kind, asks for it; and that evictions are no failures of the Job, where it says so.
// `parallelism` is how many pods the Job may have at once; of a JobSet all Jobs that are alike are
// one gang.
void StampGangSize(const GangKinds& kinds, int parallelism, Annotations& annotations, Draft& job);

// Adds the label of the Job, or that its kind asks for, to a template that asks for nothing itself.
void AddGangLabel(const GangKinds& kinds, Draft& job);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_ADMISSION_GANG_GATE_H_
