// SPDX-License-Identifier: Apache-2.0
#include "operator/topology/stored_topology.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "fabric/model/model_reader.h"

namespace railhead::topology {

using kube::Json;

std::optional<StoredTopology> ReadStoredTopology(const Json& object) {
  if (kube::StringAt(object, {"metadata", "name"}) != kTopologyName) return std::nullopt;
  StoredTopology stored;
  stored.version = kube::StringAt(object, {"metadata", "resourceVersion"});
  const Json* generation = kube::FindPath(object, {"metadata", "generation"});
  if (generation != nullptr && generation->is_number_integer()) {
    stored.generation = generation->get<int64_t>();
  }
  if (const Json* status = kube::Find(object, "status")) stored.status = *status;
  const Json* model = kube::FindPath(object, {"spec", "model"});
  if (model == nullptr || model->is_null()) return stored;
  const Json text = {{"apiVersion", kTopologyVersion},
                     {"kind", "FabricModel"},
                     {"metadata", {{"name", kTopologyName}}},
                     {"spec", *model}};
  absl::StatusOr<fabric::FabricModel> read =
      fabric::ParseFabricModel(kube::DumpJson(text), "spec.model");
  if (read.ok()) {
    stored.given = *std::move(read);
  } else {
    stored.refusal = std::string(read.status().message());
  }
  return stored;
}

std::optional<fabric::FabricModel> ReadGivenModel(const Json& object) {
  std::optional<StoredTopology> stored = ReadStoredTopology(object);
  return stored ? std::move(stored->given) : std::nullopt;
}

}  // namespace railhead::topology
