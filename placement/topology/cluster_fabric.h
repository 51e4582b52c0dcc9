// SPDX-License-Identifier: Apache-2.0
//
// Fabric of a cluster, from a user's model or from discovery. Pure.
#ifndef RAILHEAD_PLACEMENT_TOPOLOGY_CLUSTER_FABRIC_H_
#define RAILHEAD_PLACEMENT_TOPOLOGY_CLUSTER_FABRIC_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/discovery/fusion.h"
#include "fabric/discovery/observations.h"
#include "fabric/model/fabric_model.h"

namespace railhead::topology {

// Returns true if the node has or offers GPUs, HCAs or a place in a fabric.
bool InFabric(const fabric::SeenNode& node);

struct ClusterFabric {
  bool given = false;  // a user provided the model; else discovered
  fabric::DiscoveredFabric found;
};

// Determines the fabric. If users provide a model, it applies: restricted to nodes of the cluster,
// with the GPUs and rails that these report. Each contradiction becomes a finding. Without a model,
// node labels give the places.
//
// Returns FailedPrecondition, with the required input, if no node has a place.
absl::StatusOr<ClusterFabric> FindFabric(std::vector<fabric::SeenNode> nodes,
                                         const std::optional<fabric::FabricModel>& given);

}  // namespace railhead::topology

#endif  // RAILHEAD_PLACEMENT_TOPOLOGY_CLUSTER_FABRIC_H_
