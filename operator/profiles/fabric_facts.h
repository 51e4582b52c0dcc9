// SPDX-License-Identifier: Apache-2.0
//
// Facts that hold for all nodes of a cluster, from the labels of the node agents (see
// device-plugin/README.md). A pod may run on any node, so only common facts may determine its
// environment.
#ifndef RAILHEAD_OPERATOR_PROFILES_FABRIC_FACTS_H_
#define RAILHEAD_OPERATOR_PROFILES_FABRIC_FACTS_H_

#include <map>
#include <optional>
#include <string>

#include "operator/objects/label_selector.h"
#include "operator/objects/label_set.h"

namespace railhead::op {

struct FabricFacts {
  int nodes = 0;                           // with RDMA rails
  std::map<std::string, int> link_layers;  // number of nodes by value: InfiniBand, Ethernet, mixed
  // Nodes with rails and GPUs: those on which an HCA reaches GPU memory, by dmabuf or peermem, and
  // those on which no HCA does.
  int gpu_direct = 0;
  int no_gpu_direct = 0;
  std::string no_gpu_direct_node;  // one of the latter, for messages

  // Adds a node. Ignores nodes without rails.
  void AddNode(const std::string& name, const LabelSet& labels);

  bool operator==(const FabricFacts&) const = default;
};

// Returns the labels that AddNode reads; nullopt for a node that it ignores.
std::optional<Labels> FabricLabels(const LabelSet& labels);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_PROFILES_FABRIC_FACTS_H_
