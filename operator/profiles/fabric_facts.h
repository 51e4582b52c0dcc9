// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_PROFILES_FABRIC_FACTS_H_
#define RAILHEAD_OPERATOR_PROFILES_FABRIC_FACTS_H_

#include <map>
#include <optional>
#include <string>

#include "operator/label_selector.h"

namespace railhead::op {

// What the node agents of a cluster say of all its nodes together, from the labels that they write
// (device-plugin/README.md, "What the cluster is told"). A pod may come to any node, so what is not
// true of all of them cannot be its environment.
struct FabricFacts {
  int nodes = 0;                           // with RDMA rails
  std::map<std::string, int> link_layers;  // how many nodes say InfiniBand, Ethernet, mixed
  // Of the nodes with rails and GPUs: those where an HCA reaches the GPUs' memory, by dmabuf or
  // peermem, and those where none does.
  int gpu_direct = 0;
  int no_gpu_direct = 0;
  std::string no_gpu_direct_node;  // one of the latter, for messages

  // Counts a node in. One without rails has no say.
  void AddNode(const std::string& name, const Labels& labels);

  bool operator==(const FabricFacts&) const = default;
};

// Of a node's labels those that AddNode looks at; nothing for a node that has no say.
std::optional<Labels> FabricLabels(const Labels& labels);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_FABRIC_FACTS_H_
