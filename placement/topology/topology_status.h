// SPDX-License-Identifier: Apache-2.0
//
// Status of the FabricTopology: the fabric, its faults, and whether it is published. Bounded: it
// lists leaves, not their nodes. Pure.
#ifndef RAILHEAD_PLACEMENT_TOPOLOGY_TOPOLOGY_STATUS_H_
#define RAILHEAD_PLACEMENT_TOPOLOGY_TOPOLOGY_STATUS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kube/json.h"
#include "placement/topology/cluster_fabric.h"
#include "placement/topology/stored_topology.h"

namespace railhead::topology {

// Maximum size in bytes; the API server's limit for an object is 1.5 MiB.
inline constexpr size_t kMaxStatus = size_t{512} << 10;

struct TopologyReport {
  int64_t generation = 0;
  absl::StatusOr<ClusterFabric> fabric;   // or why there is none
  std::optional<absl::Status> published;  // nullopt: publishing is off
};

// Returns the object to apply to the status subresource; nullopt if the stored status is equal.
// Conditions:
//
//   Discovered  a fabric is known (reason Given or Labels), or why not
//   Consistent  sources agree; else the contradictions, with nodes and fixes
//   Published   labels and objects of other schedulers match the fabric
//
// An unchanged condition keeps its lastTransitionTime; an unchanged status keeps its lastChange.
// All others get `now`. The object contains the resourceVersion of `stored`.
std::optional<kube::Json> StatusToApply(const StoredTopology& stored, const TopologyReport& report,
                                        absl::Time now);

// Returns true if the change should be written without delay: a new generation, or a condition that
// changed. Counts, such as nodes and dead rails, change constantly in a large cluster.
bool IsUrgent(const kube::Json& before, const kube::Json& after);

}  // namespace railhead::topology

#endif  // RAILHEAD_PLACEMENT_TOPOLOGY_TOPOLOGY_STATUS_H_
