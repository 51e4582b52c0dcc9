// SPDX-License-Identifier: Apache-2.0
//
// The fabric as objects of other schedulers, if the cluster has them.
#ifndef RAILHEAD_OPERATOR_TOPOLOGY_FOREIGN_OBJECTS_H_
#define RAILHEAD_OPERATOR_TOPOLOGY_FOREIGN_OBJECTS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "fabric/model/fabric_model.h"
#include "kube/client.h"
#include "placement/topology/published.h"

namespace railhead::topology {

// Keeps Kueue's and KAI's Topology and Volcano's HyperNodes equal to the fabric, by server-side
// apply, if the API server has the kind. Applies an object again only if it differs, or after 10
// minutes, because others may have changed or deleted it. Deletes HyperNodes that the fabric no
// longer has; a Topology is not deleted, because queues refer to it.
//
// Rights needed: create and patch topologies (kueue.x-k8s.io, kai.scheduler) and hypernodes
// (topology.volcano.sh); list and delete hypernodes.
class ForeignObjects {
 public:
  // `api` must outlive this. `leads` is called before each write.
  ForeignObjects(kube::Api* api, std::function<bool()> leads);

  // Writes the objects of each scheduler; returns the first error after trying all schedulers. Pass
  // `labels` only if all nodes can have them; without, objects that need labels are skipped.
  absl::Status Write(const fabric::FabricModel& model, const PlaceLabels* labels, absl::Time now);
  // Call after losing leadership: forgets what was applied, since another leader may change it.
  void Forget();

 private:
  struct Applied {
    std::string text;
    absl::Time at;
  };

  absl::StatusOr<bool> Known(const std::string& api, const std::string& resource, absl::Time now);
  absl::Status Apply(const kube::ObjectRef& ref, const OrderedJson& object, absl::Time now);
  absl::Status WriteTopology(const std::string& api, const OrderedJson& object, absl::Time now);
  absl::Status WriteHyperNodes(const fabric::FabricModel& model, absl::Time now);

  kube::Api* const api_;
  const std::function<bool()> leads_;
  struct Kind {
    bool known = false;
    absl::Time at = absl::InfinitePast();
  };
  std::map<std::string, Kind> kinds_;       // by API and resource
  std::map<std::string, Applied> applied_;  // by ObjectRef's text
};

}  // namespace railhead::topology

#endif  // RAILHEAD_OPERATOR_TOPOLOGY_FOREIGN_OBJECTS_H_
