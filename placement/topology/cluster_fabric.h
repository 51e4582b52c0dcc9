// SPDX-License-Identifier: Apache-2.0
//
// The fabric of a cluster, from what is known in it.
#ifndef RAILHEAD_PLACEMENT_TOPOLOGY_CLUSTER_FABRIC_H_
#define RAILHEAD_PLACEMENT_TOPOLOGY_CLUSTER_FABRIC_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/discovery/fusion.h"
#include "fabric/discovery/observations.h"
#include "fabric/model/fabric_model.h"

namespace railhead::topology {

// Whether a node has, or offers, any of what fabrics are about.
bool InFabric(const fabric::SeenNode& node);

struct ClusterFabric {
  bool given = false;  // by people; else discovered
  fabric::DiscoveredFabric found;
};

// With a model that people give, that is the fabric: of its nodes those that the cluster has, with
// the GPUs and rails that they tell; where the two differ is a finding. Without one, the labels of
// nodes say where they are.
//
// FailedPrecondition: no node has a place. The message says what to give.
absl::StatusOr<ClusterFabric> FindFabric(std::vector<fabric::SeenNode> nodes,
                                         const std::optional<fabric::FabricModel>& given);

}  // namespace railhead::topology

#endif  // RAILHEAD_PLACEMENT_TOPOLOGY_CLUSTER_FABRIC_H_
