// SPDX-License-Identifier: Apache-2.0
//
// Merges the observations of all sources into one fabric with its findings. Used by `railhead
// topology` and the operator.
#ifndef RAILHEAD_FABRIC_DISCOVERY_FUSION_H_
#define RAILHEAD_FABRIC_DISCOVERY_FUSION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/finding.h"
#include "fabric/discovery/observations.h"
#include "fabric/model/fabric_model.h"

namespace railhead::fabric {

// A NIC of a node and the switch port that its cable leads to.
struct RailWire {
  int rail = 0;
  std::string nic;
  std::string at;    // the switch; empty: unknown
  std::string port;  // of the switch
  double gbps = 0;   // 0: unknown
  bool dead = false;
  bool miswired = false;
};

// Returns the rails of a model's node, which has dead rails but no cables.
std::vector<RailWire> WiresOf(const FabricNode& node, int rails);

struct DiscoveredFabric {
  FabricModel model;
  std::vector<std::vector<RailWire>> wires;  // [node of the model]
  // [level][domain of the model]: its switches; of a leaf, one per rail ("": unknown). Empty if all
  // positions come from labels.
  std::vector<std::vector<std::vector<std::string>>> switches;
  std::vector<Finding> findings;  // those that need action first
};

// Positions come from cables, if any are known; labels place nodes without cables, and are compared
// with the cables. The result does not depend on the order of observations; names are in natural
// order. `name` is the model's.
//
// FailedPrecondition if no node has a position; the message names the input to add.
absl::StatusOr<DiscoveredFabric> FuseObservations(const Observations& seen, absl::string_view name);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_FUSION_H_
