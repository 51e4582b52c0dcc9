// SPDX-License-Identifier: Apache-2.0
//
// Facts about a node that the agent publishes: labels for selectors and people, one annotation for
// the operator, and a condition. Pure. Used by Agent, written by NodeReporter.
#ifndef RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_FACTS_H_
#define RAILHEAD_DEVICE_PLUGIN_CLUSTER_NODE_FACTS_H_

#include <map>
#include <optional>
#include <string>

#include "fabric/inventory.h"
#include "fabric/node_facts/names.h"
#include "fabric/node_facts/writer.h"

namespace railhead::device_plugin {

inline constexpr char kRailsCondition[] = "RailheadRailsReady";

using fabric::HostFacts;

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
