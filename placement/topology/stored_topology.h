// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_PLACEMENT_TOPOLOGY_STORED_TOPOLOGY_H_
#define RAILHEAD_PLACEMENT_TOPOLOGY_STORED_TOPOLOGY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/model/fabric_model.h"
#include "kube/json.h"

namespace railhead::topology {

inline constexpr char kTopologyVersion[] = "railhead.io/v1alpha1";
inline constexpr char kTopologyKind[] = "FabricTopology";
inline constexpr char kTopologyResource[] = "fabrictopologies";
// There is one fabric in a cluster, and one object of this name that says what it is. A model that
// people write and that outgrows this object (some 15,000 nodes) is in several: the names of the
// others begin with the second one.
inline constexpr char kTopologyName[] = "cluster";
inline constexpr char kPartPrefix[] = "cluster-";

// What people have written into one of these objects.
struct ModelPart {
  std::string name;   // of the object
  std::string model;  // spec.model, as JSON; empty: there is none

  bool operator==(const ModelPart&) const = default;
};

// Nothing for an object of another name.
std::optional<ModelPart> ReadModelPart(const kube::Json& object);

// The fabric that all parts are together: the domains of "cluster", and then those of the others in
// the natural order of their names. They are of the same topology, levels and rails; all else
// stands in "cluster". Nothing: no part has a model. InvalidArgument names the object, if it is not
// the only one, and the field. The API server's schema lets little wrong in, but it may be older or
// newer than this program.
absl::StatusOr<std::optional<fabric::FabricModel>> JoinModel(std::vector<ModelPart> parts);

// What the operator keeps of a FabricTopology.
struct StoredTopology {
  std::string version;  // metadata.resourceVersion
  int64_t generation = 0;
  ModelPart part;
  kube::Json status;  // of "cluster"; null: there is none yet

  bool operator==(const StoredTopology&) const = default;
};

std::optional<StoredTopology> ReadStoredTopology(const kube::Json& object);

// JoinModel of what does not change between two questions is parsed once. Not thread-safe.
class JoinedModel {
 public:
  const absl::StatusOr<std::optional<fabric::FabricModel>>& Of(std::vector<ModelPart> parts);

 private:
  std::vector<ModelPart> parts_;
  absl::StatusOr<std::optional<fabric::FabricModel>> model_ = std::optional<fabric::FabricModel>();
};

}  // namespace railhead::topology

#endif  // RAILHEAD_PLACEMENT_TOPOLOGY_STORED_TOPOLOGY_H_
