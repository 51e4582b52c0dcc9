// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_PROFILES_STORED_NODE_H_
#define RAILHEAD_OPERATOR_PROFILES_STORED_NODE_H_

#include <optional>

#include "operator/label_selector.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// What the operator keeps of a Node: for admission, and for the verdict.
struct StoredNode {
  std::optional<Labels> fabric;  // as of FabricLabels; nothing when it has no say
  verdict::NodeFacts facts;

  bool operator==(const StoredNode&) const = default;
};

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_STORED_NODE_H_
