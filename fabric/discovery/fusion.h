// SPDX-License-Identifier: Apache-2.0
//
// What all sources together say: one fabric, and what is wrong with it.
#ifndef RAILHEAD_FABRIC_DISCOVERY_FUSION_H_
#define RAILHEAD_FABRIC_DISCOVERY_FUSION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fabric/discovery/finding.h"
#include "fabric/discovery/observations.h"
#include "fabric/model/fabric_model.h"

namespace railhead::fabric {

// A NIC of a node and where its cable leads.
struct RailWire {
  int rail = 0;
  std::string nic;
  std::string at;    // the switch; empty: not known
  std::string port;  // of the switch
  double gbps = 0;   // 0: not known
  bool dead = false;
  bool miswired = false;
};

// Of a node of a model, which says which rails are dead, and nothing of cables.
std::vector<RailWire> WiresOf(const FabricNode& node, int rails);

struct DiscoveredFabric {
  FabricModel model;
  std::vector<std::vector<RailWire>> wires;  // [node of the model]
  // [level][domain of the model]: its switches; of a leaf, that of each rail ("": not known).
  // Empty where labels alone said where nodes are.
  std::vector<std::vector<std::vector<std::string>>> switches;
  std::vector<Finding> findings;  // troubles first
};

// Cables decide where a node is, when any were seen; labels place the nodes that have none and are
// compared with the cables. The same observations in any order give the same fabric, whose names
// are in natural order. `name` is the model's.
//
// FailedPrecondition when no node has a place: the message says what to give.
absl::StatusOr<DiscoveredFabric> FuseObservations(const Observations& seen, absl::string_view name);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_FUSION_H_
