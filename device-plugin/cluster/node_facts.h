// SPDX-License-Identifier: Apache-2.0
//
// Facts about a node that the agent publishes: labels for selectors and people, one annotation for
// the operator, and a condition. Pure. Used by Agent, written by NodeReporter.
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
// Rails of HCAs that containers hold, as in "0,1,4"; only if some are held and others free.
// Separate from the facts, which change rarely.
inline constexpr char kRailsInUseAnnotation[] = "railhead.io/rails-in-use";
inline constexpr char kRailsCondition[] = "RailheadRailsReady";

// Facts outside the inventory.
struct HostFacts {
  std::optional<fabric::GpuDirect> gpu_direct = {};  // if the node has GPUs
  // RLIMIT_MEMLOCK of containers: bytes that a process without CAP_IPC_LOCK may register with an
  // HCA. Nullopt: unlimited.
  std::optional<uint64_t> memlock_bytes = {};
  std::set<int> rails_in_use = {};  // of HCAs that containers hold exclusively
  // RDMA namespace mode of the kernel: "shared", "exclusive" (a pod without host network sees only
  // HCAs that were moved into it), or "" if unknown.
  std::string rdma_namespaces = {};

  bool operator==(const HostFacts&) const = default;
};

struct RailsCondition {
  bool ready = false;
  std::string reason;   // one word
  std::string message;  // rails that are down, causes and fixes

  bool operator==(const RailsCondition&) const = default;
};

// By default: facts of a node without RDMA devices, all empty.
struct NodeFacts {
  std::map<std::string, std::string> labels;
  std::string annotation;    // JSON; "": none
  std::string rails_in_use;  // "0,1,4"; "" for none and for all
  std::optional<RailsCondition> condition;

  bool operator==(const NodeFacts&) const = default;
};

// `inventory` as offered: with configured rails and final health.
NodeFacts DescribeNode(const fabric::NodeInventory& inventory, const HostFacts& host);

}  // namespace railhead::device_plugin

#endif  // RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_FACTS_H_
