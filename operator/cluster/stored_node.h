// SPDX-License-Identifier: Apache-2.0
//
// A cached Node for all consumers: admission, verdict, gangs and topology. Each object is parsed
// once. Pure.
#ifndef RAILHEAD_OPERATOR_CLUSTER_STORED_NODE_H_
#define RAILHEAD_OPERATOR_CLUSTER_STORED_NODE_H_

#include <string>
#include <vector>

#include "fabric/discovery/observations.h"
#include "kube/json.h"
#include "operator/objects/label_set.h"
#include "operator/objects/node_rules.h"
#include "operator/objects/rdma_resources.h"
#include "operator/objects/resources.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// Node heartbeats do not change the value.
struct StoredNode {
  std::string name;
  std::string uid;
  LabelSet labels;           // railhead.io/*; for gangs all labels of nodes with RDMA
  verdict::NodeFacts facts;  // RDMA devices, and what the agent publishes
  int hcas = 0;              // RDMA devices that it offers

  // For gangs and topology.
  std::vector<fabric::SeenPlace> places;  // from its labels
  bool cordoned = false;
  bool ready = true;             // also if the condition is absent
  gangs::Resources allocatable;  // HCAs and GPUs; for gangs all resources
  bool offers_gpus = false;      // kubelet knows GPUs, even if it offers none now

  // For gangs; only of nodes for which HasRdma is true.
  std::string hostname;  // label kubernetes.io/hostname, the target of released pods
  std::vector<gangs::Taint> taints;
  std::vector<int> used_rails;  // as the agent reports; ascending

  bool operator==(const StoredNode&) const = default;
};

struct NodeReading {
  RdmaResources rdma_resources = {};
  bool gangs = false;
  bool topology = false;
};

StoredNode ReadNode(const kube::Json& node, const NodeReading& reading);

// Returns true for a node that offers HCAs or has node facts of an agent, readable or not. Gangs
// are placed on no other nodes.
bool HasRdma(const StoredNode& node);

// Converts the node for fabric discovery.
fabric::SeenNode SeenNodeOf(const StoredNode& node);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CLUSTER_STORED_NODE_H_
