// SPDX-License-Identifier: Apache-2.0
//
// Which nodes a pod may go to by what it says itself: its nodeSelector, its required node affinity,
// and the taints that it tolerates. The rules are those of the Kubernetes API (v1 Pod).
#ifndef RAILHEAD_OPERATOR_GANGS_NODE_RULES_H_
#define RAILHEAD_OPERATOR_GANGS_NODE_RULES_H_

#include <string>
#include <vector>

#include "kube/json.h"
#include "operator/label_selector.h"

namespace railhead::op::gangs {

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // "NoSchedule", "NoExecute", ...

  bool operator==(const Taint&) const = default;
};

struct Toleration {
  std::string key;  // empty: every key
  bool exists = false;
  std::string value;
  std::string effect;  // empty: every effect

  bool operator==(const Toleration&) const = default;
};

struct NodeExpression {
  bool of_field = false;  // of metadata.name, not of a label
  std::string key;
  std::string how;  // "In", "NotIn", "Exists", "DoesNotExist", "Gt" or "Lt"
  std::vector<std::string> values;

  bool operator==(const NodeExpression&) const = default;
};

struct NodeRules {
  Labels selector;
  // One of these must hold, and of it all; nothing: every node will do.
  std::vector<std::vector<NodeExpression>> terms;
  bool has_terms = false;
  std::vector<Toleration> tolerations;

  bool operator==(const NodeRules&) const = default;
};

// `spec` is a pod's. What is not as the API has it matches nothing.
NodeRules ReadNodeRules(const kube::Json& spec);

// Of a node's spec.
std::vector<Taint> ReadTaints(const kube::Json& node_spec);

// Why a node of this name, these labels and taints is not for the pod, in words that are the same
// for all nodes with the same trouble; empty: it may go there.
std::string WhyNot(const NodeRules& rules, const std::string& name, const Labels& labels,
                   const std::vector<Taint>& taints);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_NODE_RULES_H_
