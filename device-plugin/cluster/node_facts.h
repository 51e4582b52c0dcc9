// SPDX-License-Identifier: Apache-2.0
//
// What the cluster is told about a node: labels for selectors and people, one annotation for the
// operator, and a condition. Pure.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_FACTS_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "fabric/gpu_direct.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {

inline constexpr char kFactsAnnotation[] = "railhead.io/node-facts";
// Rails of HCAs that containers hold, as in "0,1,4", where they hold some and others are free. Not
// in the facts, which change seldom.
inline constexpr char kRailsInUseAnnotation[] = "railhead.io/rails-in-use";
inline constexpr char kRailsCondition[] = "RailheadRailsReady";

// What is not in the inventory.
struct HostFacts {
  std::optional<fabric::GpuDirect> gpu_direct = {};  // where the node has GPUs
  // RLIMIT_MEMLOCK as containers get it: how much memory a process without CAP_IPC_LOCK may
  // register with an HCA. Nothing: as much as it likes.
  std::optional<uint64_t> memlock_bytes = {};
  std::set<int> rails_in_use = {};  // of HCAs that containers hold, each for itself
  // Of the kernel: "shared", "exclusive" (a pod without the host's network sees no HCA but those
  // that were moved into it), or "" when unknown.
  std::string rdma_namespaces = {};

  bool operator==(const HostFacts&) const = default;
};

struct RailsCondition {
  bool ready = false;
  std::string reason;   // one word
  std::string message;  // which rails are down, why, and what to do

  bool operator==(const RailsCondition&) const = default;
};

// As constructed it is what is told of a node without RDMA devices: nothing.
struct NodeFacts {
  std::map<std::string, std::string> labels;
  std::string annotation;    // JSON; "" for none
  std::string rails_in_use;  // "0,1,4"; "" for none, and for all
  std::optional<RailsCondition> condition;

  bool operator==(const NodeFacts&) const = default;
};

// `inventory` as it is offered: rails as configured, troubles settled.
NodeFacts DescribeNode(const fabric::NodeInventory& inventory, const HostFacts& host);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_FACTS_H_
