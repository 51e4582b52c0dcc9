// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_VERDICT_POD_FACTS_H_
#define RAILHEAD_OPERATOR_VERDICT_POD_FACTS_H_

#include <optional>

#include "kube/json.h"
#include "operator/rdma_resources.h"
#include "operator/verdict/facts.h"

namespace railhead::op::verdict {

// What the verdict keeps of a pod; nothing of one that asks for no RDMA, or that cannot be read.
// What is strange in it is as if it were not there: the pod is somebody's, who may have written
// what they like, so what is kept of it is bounded, too.
std::optional<PodFacts> PodFactsOf(const kube::Json& pod, const RdmaResources& rdma);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_POD_FACTS_H_
