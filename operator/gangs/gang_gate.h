// SPDX-License-Identifier: Apache-2.0
//
// What admission does for gangs: a pod that asks to start with its gang gets a scheduling gate, and
// a Job's template the gang's size. Pure. A pod that does not ask is never gated, and one that asks
// for what cannot be starts at once, with a warning.
#ifndef RAILHEAD_OPERATOR_GANGS_GANG_GATE_H_
#define RAILHEAD_OPERATOR_GANGS_GANG_GATE_H_

#include <map>
#include <string>
#include <vector>

#include "kube/json.h"

namespace railhead::op::gangs {

using Annotations = std::map<std::string, std::string>;

// Appends the gate to `patch` where the pod gets it. `annotations` are the pod's.
void AddGate(const kube::Json& pod, const Annotations& annotations, kube::Json& patch,
             std::vector<std::string>& warnings);

// Adds the size of the gang to the annotations of a Job's template, whose label, or else the Job's,
// asks for it. `parallelism` is how many pods the Job has at once.
void StampSize(const kube::Json& job, int parallelism, Annotations& annotations,
               std::vector<std::string>& warnings);

// Appends the label of the Job for a template that asks for nothing itself. The template has
// metadata when this is applied.
void AddLabel(const kube::Json& job, kube::Json& patch);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_GANG_GATE_H_
