// SPDX-License-Identifier: Apache-2.0
//
// Facts of a Pod for the diagnosis. Pure. Used by the caches and `railhead doctor`.
#ifndef RAILHEAD_OPERATOR_VERDICT_POD_FACTS_H_
#define RAILHEAD_OPERATOR_VERDICT_POD_FACTS_H_

#include <optional>

#include "kube/json.h"
#include "operator/objects/rdma_resources.h"
#include "operator/verdict/facts.h"

namespace railhead::op::verdict {

// Returns the facts of a pod; nullopt if it requests no RDMA or is unreadable. Malformed fields are
// treated as absent. Pods are untrusted input, so the size of the result is bounded.
std::optional<PodFacts> PodFactsOf(const kube::Json& pod, const RdmaResources& rdma);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_POD_FACTS_H_
