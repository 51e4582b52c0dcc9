// SPDX-License-Identifier: Apache-2.0
//
// Reader of Nodes with the fields that gangs need. Used by `railhead why`; the operator reads its
// cached Nodes in cluster/.
#ifndef RAILHEAD_OPERATOR_GANGS_STORED_NODE_H_
#define RAILHEAD_OPERATOR_GANGS_STORED_NODE_H_

#include <optional>

#include "kube/json.h"
#include "operator/cluster/stored_node.h"
#include "operator/objects/rdma_resources.h"

namespace railhead::op::gangs {

// Returns the node with all fields for gangs; nullopt for a node that gangs do not use.
std::optional<StoredNode> ReadStoredNode(const kube::Json& node, const RdmaResources& rdma = {});

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_STORED_NODE_H_
