// SPDX-License-Identifier: Apache-2.0
//
// What admission does for gangs: a pod that asks to start with its gang gets a scheduling gate, and
// a Job's template the gang's size. Pure. A pod that does not ask is never gated, and one that asks
// for what cannot be starts at once, with a warning.
#ifndef RAILHEAD_OPERATOR_GANGS_GANG_GATE_H_
#define RAILHEAD_OPERATOR_GANGS_GANG_GATE_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "kube/json.h"

namespace railhead::op::gangs {

using Annotations = std::map<std::string, std::string>;

// Kinds of jobs (workload.h) whose pods wait for each other without asking for it.
using Kinds = std::set<std::string>;

// Adds the size of the gang to the annotations of a pod that asks to wait for it, or whose kind
// does, where its kind says it.
void AddSize(const kube::Json& pod, const Kinds& kinds, Annotations& annotations);

// The size of the gang that a pod waits for and whose order nobody knows before it is placed: no
// index gives the pod its rank. Empty: it is no such pod. `annotations` are the pod's, with the
// size.
std::string SizeWithoutRanks(const kube::Json& pod, const Kinds& kinds,
                             const Annotations& annotations);

// Appends the gate to `patch` where the pod gets it, and the label that its kind asks for.
// `annotations` are the pod's.
void AddGate(const kube::Json& pod, const Kinds& kinds, const Annotations& annotations,
             kube::Json& patch, std::vector<std::string>& warnings);

// Adds the size of the gang to the annotations of a Job's template, whose label, or else the Job's
// or its kind, asks for it; and that evictions are no failures of the Job, where it says so.
// `parallelism` is how many pods the Job may have at once; of a JobSet all Jobs that are alike are
// one gang.
void StampSize(const kube::Json& job, const Kinds& kinds, int parallelism, Annotations& annotations,
               std::vector<std::string>& warnings);

// Appends the label of the Job, or that its kind asks for, for a template that asks for nothing
// itself. The template has metadata when this is applied.
void AddLabel(const kube::Json& job, const Kinds& kinds, kube::Json& patch);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_GANG_GATE_H_
