// SPDX-License-Identifier: Apache-2.0
//
// Facts of a Node for the diagnosis. Pure. Used by the caches and `railhead doctor`.
#ifndef RAILHEAD_OPERATOR_VERDICT_NODE_FACTS_H_
#define RAILHEAD_OPERATOR_VERDICT_NODE_FACTS_H_

#include "kube/json.h"
#include "operator/objects/rdma_resources.h"
#include "operator/verdict/facts.h"

namespace railhead::op::verdict {

// Returns the facts of a node: its devices, and what its agent published (see
// device-plugin/README.md). Skips unreadable facts.
NodeFacts NodeFactsOf(const kube::Json& node, const RdmaResources& rdma);

}  // namespace railhead::op::verdict

#endif  // RAILHEAD_OPERATOR_VERDICT_NODE_FACTS_H_
