// SPDX-License-Identifier: Apache-2.0
//
// JSON Patches with which the leader changes a gang's pods: release, ranks, failure. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_RELEASE_PATCH_H_
#define RAILHEAD_OPERATOR_GANGS_RELEASE_PATCH_H_

#include <string>

#include "kube/json.h"
#include "operator/gangs/planner.h"

namespace railhead::op::gangs {

// Returns the JSON Patch that sends a gated pod to its node, atomically: adds the node to its
// nodeSelector, rank and decision to its annotations, and removes the gate. It applies to this pod
// with this gate only: it fails for another pod of that name, or if the pod was released already.
// The pod must have annotations, such as its gang's size.
kube::Json ReleasePatch(const Assignment& assignment, const std::string& placement);

// Returns the JSON Patch that removes the gate of this pod only, and adds its rank and the address
// of rank 0, if known, without a node.
kube::Json UngatePatch(const Assignment& assignment);

// Returns the JSON Patch that adds rank and address of rank 0 to this pod, which has none yet.
kube::Json RankPatch(const Assignment& assignment);

// Returns the JSON Patch of the status that makes a gated pod fail permanently, as if it had run.
kube::Json FailurePatch(const StoredPod& pod, const std::string& why);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_RELEASE_PATCH_H_
