// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_TOPOLOGY_STORED_TOPOLOGY_H_
#define RAILHEAD_OPERATOR_TOPOLOGY_STORED_TOPOLOGY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "fabric/model/fabric_model.h"
#include "kube/json.h"

namespace railhead::topology {

inline constexpr char kTopologyVersion[] = "railhead.io/v1alpha1";
inline constexpr char kTopologyKind[] = "FabricTopology";
inline constexpr char kTopologyResource[] = "fabrictopologies";
// There is one fabric in a cluster, and one object of this name.
inline constexpr char kTopologyName[] = "cluster";

// What the operator keeps of the FabricTopology.
struct StoredTopology {
  std::string version;  // metadata.resourceVersion
  int64_t generation = 0;
  std::optional<fabric::FabricModel> given;  // spec.model
  std::string refusal;                       // why it cannot be read; begins with the field
  kube::Json status;                         // null: there is none yet

  bool operator==(const StoredTopology&) const = default;
};

// Nothing for an object of another name. The API server's schema lets little wrong in, but it may
// be older or newer than this program.
std::optional<StoredTopology> ReadStoredTopology(const kube::Json& object);

// The model alone, if people have written one that can be read.
std::optional<fabric::FabricModel> ReadGivenModel(const kube::Json& object);

}  // namespace railhead::topology

#endif  // RAILHEAD_OPERATOR_TOPOLOGY_STORED_TOPOLOGY_H_
