// SPDX-License-Identifier: Apache-2.0
//
// A Node as a replica keeps it, for all that look at nodes: admission, the verdict, gangs and the
// topology. It is read once from each object. Pure.
#ifndef RAILHEAD_OPERATOR_CLUSTER_STORED_NODE_H_
#define RAILHEAD_OPERATOR_CLUSTER_STORED_NODE_H_

#include <string>
#include <vector>

#include "fabric/discovery/observations.h"
#include "kube/json.h"
#include "operator/gangs/node_rules.h"
#include "operator/gangs/resources.h"
#include "operator/label_selector.h"
#include "operator/rdma_resources.h"
#include "operator/verdict/facts.h"

namespace railhead::op {

// Heartbeats do not change it.
struct StoredNode {
  std::string name;
  std::string uid;
  Labels labels;             // railhead.io/*; for gangs all labels of nodes that HasRdma
  verdict::NodeFacts facts;  // its RDMA devices, and what its agent publishes
  int hcas = 0;              // RDMA devices that it offers

  // Read for gangs and the topology.
  std::vector<fabric::SeenPlace> places;  // by its labels
  bool cordoned = false;
  bool ready = true;             // also if no condition says so
  gangs::Resources allocatable;  // HCAs and GPUs; for gangs everything

  // Read for gangs, of nodes that HasRdma.
  std::string hostname;  // its label, by which pods are sent there
  std::vector<gangs::Taint> taints;
  std::vector<int> used_rails;  // as its agent says; ascending

  bool operator==(const StoredNode&) const = default;
};

struct NodeReading {
  RdmaResources rdma_resources = {};
  bool gangs = false;
  bool topology = false;
};

StoredNode ReadNode(const kube::Json& node, const NodeReading& reading);

// Returns true for a node that offers HCAs or has the facts of a node agent, legible or not. Gangs
// go to no others.
bool HasRdma(const StoredNode& node);

// Returns the node as the discovery of fabrics takes it.
fabric::SeenNode SeenNodeOf(const StoredNode& node);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_CLUSTER_STORED_NODE_H_
