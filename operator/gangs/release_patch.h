// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_GANGS_RELEASE_PATCH_H_
#define RAILHEAD_OPERATOR_GANGS_RELEASE_PATCH_H_

#include <string>

#include "kube/json.h"
#include "operator/gangs/planner.h"

namespace railhead::op::gangs {

// The JSON Patch that sends a gated pod to its node, all of it or nothing: the node in its
// nodeSelector, its rank and the decision's name in its annotations, and the gate away. It applies
// to exactly this pod with exactly this gate: another one of the same name, or one that somebody
// else has released, refuses it. The pod has annotations: that of its gang's size.
kube::Json ReleasePatch(const Assignment& assignment, const std::string& placement);

// The JSON Patch that takes the gate of exactly this pod away, tells it its rank and where
// rank 0 is, if they are known, and says nothing of a node.
kube::Json UngatePatch(const Assignment& assignment);

// The JSON Patch that tells its rank, and where rank 0 is, exactly this pod, which has none yet.
kube::Json RankPatch(const Assignment& assignment);

// The JSON Patch of the status by which a gated pod has failed: for good, as if it had run.
kube::Json FailurePatch(const StoredPod& pod, const std::string& why);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_RELEASE_PATCH_H_
