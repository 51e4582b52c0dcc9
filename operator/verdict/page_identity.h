// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_VERDICT_PAGE_IDENTITY_H_
#define RAILHEAD_OPERATOR_VERDICT_PAGE_IDENTITY_H_

#include "absl/status/status.h"
#include "operator/verdict/facts.h"

namespace railhead::op::verdict {

// Whether the page that answered at a pod's address is the pod's own: an address may have belonged
// to another pod a moment ago, and pods in the network of their node share one, where only a page
// that names its pod is believed. FailedPrecondition names both pods.
absl::Status CheckPageIsOf(const RuntimeReport& report, const PodFacts& pod);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_PAGE_IDENTITY_H_
