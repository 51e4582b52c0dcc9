// SPDX-License-Identifier: Apache-2.0
//
// The status of the FabricTopology: what the fabric is, what is wrong with it, and whether it is
// published. Bounded: it has leaves, and not their nodes. Pure.
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

// An object of the API has less than 1.5 MiB.
inline constexpr size_t kMaxStatus = size_t{512} << 10;

struct TopologyReport {
  int64_t generation = 0;
  absl::StatusOr<ClusterFabric> fabric;   // or why there is none
  std::optional<absl::Status> published;  // nothing: it is not to be published
};

// The object to apply to the subresource status; nothing when it says the same already. Conditions:
//
//   Discovered  there is a fabric (reason Given or Labels), or why not
//   Consistent  no source contradicts another; or else what does, with the nodes and what to do
//   Published   labels and objects of other schedulers are as the fabric is
//
// A condition whose status stays keeps its lastTransitionTime, and the whole its lastChange while
// nothing in it is another; `now` is that of the others. It carries the resourceVersion that it was
// decided on.
std::optional<kube::Json> StatusToApply(const StoredTopology& stored, const TopologyReport& report,
                                        absl::Time now);

// Whether people wait for this: there is another generation, or a condition has turned. What is
// only counted, such as nodes and dead rails, changes all the time in a large cluster.
bool IsUrgent(const kube::Json& before, const kube::Json& after);

}  // namespace railhead::topology

#endif  // RAILHEAD_PLACEMENT_TOPOLOGY_TOPOLOGY_STATUS_H_
