// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_GANGS_STORED_NODE_H_
#define RAILHEAD_OPERATOR_GANGS_STORED_NODE_H_

#include <optional>
#include <string>
#include <vector>

#include "fabric/discovery/observations.h"
#include "kube/json.h"
#include "operator/gangs/node_rules.h"
#include "operator/gangs/resources.h"
#include "operator/label_selector.h"

namespace railhead::op::gangs {

// What is kept of a node. Heartbeats do not change it.
struct StoredNode {
  std::string hostname;  // its label, by which pods are sent there
  Labels labels;
  std::vector<Taint> taints;
  bool cordoned = false;
  bool ready = true;  // also while nobody says anything
  Resources allocatable;
  fabric::SeenNode seen;        // its rails and places, with its name
  std::vector<int> used_rails;  // as its agent says; ascending

  bool operator==(const StoredNode&) const = default;
};

// Nothing for nodes that have no HCAs and no facts of a node agent: no gang goes there.
std::optional<StoredNode> ReadStoredNode(const kube::Json& node, const RdmaResources& rdma = {});

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_STORED_NODE_H_
