// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/stored_node.h"

namespace railhead::op::gangs {

std::optional<StoredNode> ReadStoredNode(const kube::Json& node, const RdmaResources& rdma) {
  StoredNode stored = ReadNode(node, {.rdma_resources = rdma, .gangs = true});
  if (!HasRdma(stored)) return std::nullopt;
  return stored;
}

}  // namespace railhead::op::gangs
