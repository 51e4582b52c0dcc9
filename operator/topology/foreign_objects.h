// SPDX-License-Identifier: Apache-2.0
//
// The fabric as objects of other schedulers, where a cluster has them.
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

// Keeps Kueue's and KAI's Topology and Volcano's HyperNodes as a fabric is, by server-side apply,
// each where the API server has its kind. What has been applied is applied again only when it is
// another one, or after ten minutes, since somebody may have changed or removed it. HyperNodes that
// were of this fabric and are not any more are deleted; a Topology stays, for queues refer to it.
//
// Rights needed: create and patch topologies (kueue.x-k8s.io, kai.scheduler) and hypernodes
// (topology.volcano.sh); list and delete hypernodes.
class ForeignObjects {
 public:
  // `api` must outlive this. `leads` is asked before each write.
  ForeignObjects(kube::Api* api, std::function<bool()> leads);

  // All that can be written is; the first trouble of the rest. Labels only where all nodes can have
  // some: else those who need them are left out.
  absl::Status Write(const fabric::FabricModel& model, const PlaceLabels* labels, absl::Time now);
  // This replica does not lead any more, and does not know what others write.
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
