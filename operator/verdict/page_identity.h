// SPDX-License-Identifier: Apache-2.0
//
// Check that scraped metrics belong to the scraped pod. Pure. Used by PagePoller.
#ifndef RAILHEAD_OPERATOR_VERDICT_PAGE_IDENTITY_H_
#define RAILHEAD_OPERATOR_VERDICT_PAGE_IDENTITY_H_

#include "absl/status/status.h"
#include "operator/verdict/facts.h"

namespace railhead::op::verdict {

// Checks that the metrics from a pod's address are the pod's own. The address may have belonged to
// another pod before, and pods in the host network share one: there, the metrics must name the pod.
// Returns FailedPrecondition with both pods.
absl::Status CheckPageIsOf(const RuntimeReport& report, const PodFacts& pod);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_PAGE_IDENTITY_H_
