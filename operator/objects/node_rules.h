// SPDX-License-Identifier: Apache-2.0
//
// Nodes that a pod may use by its own spec: nodeSelector, required node affinity, tolerations. The
// rules are those of the Kubernetes API (v1 Pod).
#ifndef RAILHEAD_OPERATOR_OBJECTS_NODE_RULES_H_
#define RAILHEAD_OPERATOR_OBJECTS_NODE_RULES_H_

#include <compare>
#include <string>
#include <vector>

#include "kube/json.h"
#include "operator/objects/label_selector.h"
#include "operator/objects/label_set.h"

namespace railhead::op::gangs {

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // "NoSchedule", "NoExecute", ...

  bool operator==(const Taint&) const = default;
};

struct Toleration {
  std::string key;  // empty: all keys
  std::string how;  // "Equal", "Exists", "Gt" or "Lt"
  std::string value;
  std::string effect;  // empty: all effects

  bool operator==(const Toleration&) const = default;
  auto operator<=>(const Toleration&) const = default;
};

struct NodeExpression {
  bool of_field = false;  // of metadata.name instead of a label
  std::string key;
  std::string how;                  // "In", "NotIn", "Exists", "DoesNotExist", "Gt" or "Lt"
  std::vector<std::string> values;  // sorted: each node is compared with them

  bool operator==(const NodeExpression&) const = default;
  auto operator<=>(const NodeExpression&) const = default;
};

struct NodeRules {
  Labels selector;
  // One of these must hold completely. Applies if has_terms.
  std::vector<std::vector<NodeExpression>> terms;
  bool has_terms = false;
  std::vector<Toleration> tolerations;

  bool operator==(const NodeRules&) const = default;
  auto operator<=>(const NodeRules&) const = default;  // arbitrary order
};

// Reads the rules from a pod's spec. Invalid rules match nothing.
NodeRules ReadNodeRules(const kube::Json& spec);

// Reads only the host name that the spec's nodeSelector names, by which a pod was sent to its node.
NodeRules ReadHostname(const kube::Json& spec);

// Reads the taints from a node's spec.
std::vector<Taint> ReadTaints(const kube::Json& node_spec);

// Returns why the pod may not use a node with this name, labels and taints; empty if it may. The
// text is equal for all nodes with the same cause.
std::string WhyNot(const NodeRules& rules, const std::string& name, const LabelSet& labels,
                   const std::vector<Taint>& taints);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_OBJECTS_NODE_RULES_H_
