// SPDX-License-Identifier: Apache-2.0
//
// FabricTopology objects as the operator and the CLI read them: cached fields, and a user's fabric
// model in their specs.
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
// A cluster has one fabric, described by the object of this name. A user's model that exceeds the
// size of one object (about 15,000 nodes) is split over several; names of the others have the
// prefix kPartPrefix.
inline constexpr char kTopologyName[] = "cluster";
inline constexpr char kPartPrefix[] = "cluster-";

// The part of a user's model in one of these objects.
struct ModelPart {
  std::string name;   // of the object
  std::string model;  // spec.model, as JSON; empty: absent

  bool operator==(const ModelPart&) const = default;
};

// Returns nullopt for an object of another name.
std::optional<ModelPart> ReadModelPart(const kube::Json& object);

// Joins the parts to one fabric: the domains of "cluster", then those of the others in natural
// order of names. All parts have equal topology, levels and rails; everything else is in "cluster".
// Returns nullopt if no part has a model, and InvalidArgument with the field, and the object if
// there are several. The schema of the API server rejects most invalid models, but may be older or
// newer than this program.
absl::StatusOr<std::optional<fabric::FabricModel>> JoinModel(std::vector<ModelPart> parts);

// Cached part of a FabricTopology in the operator.
struct StoredTopology {
  std::string version;  // metadata.resourceVersion
  int64_t generation = 0;
  ModelPart part;
  kube::Json status;  // of "cluster"; null: none yet

  bool operator==(const StoredTopology&) const = default;
};

std::optional<StoredTopology> ReadStoredTopology(const kube::Json& object);

// Caches the result of JoinModel: parses only if the parts differ from the last call. Not
// thread-safe.
class JoinedModel {
 public:
  const absl::StatusOr<std::optional<fabric::FabricModel>>& Of(std::vector<ModelPart> parts);

 private:
  std::vector<ModelPart> parts_;
  absl::StatusOr<std::optional<fabric::FabricModel>> model_ = std::optional<fabric::FabricModel>();
};

}  // namespace railhead::topology

#endif  // RAILHEAD_PLACEMENT_TOPOLOGY_STORED_TOPOLOGY_H_
