// SPDX-License-Identifier: Apache-2.0
#include "placement/topology/stored_topology.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fabric/model/model_reader.h"
#include "fabric/natural_order.h"

namespace railhead::topology {
namespace {

using fabric::FabricModel;
using kube::Json;

constexpr char kField[] = "spec.model";

std::string FieldOf(const ModelPart& part) {
  return absl::StrCat(kTopologyKind, " ", part.name, ", ", kField);
}

absl::StatusOr<FabricModel> Parse(const Json& model, const std::string& source) {
  const Json text = {{"apiVersion", kTopologyVersion},
                     {"kind", "FabricModel"},
                     {"metadata", {{"name", kTopologyName}}},
                     {"spec", model}};
  return fabric::ParseFabricModel(kube::DumpJson(text), source);
}

// Adds the domains of a further part.
absl::Status Add(const ModelPart& part, Json more, Json& all) {
  for (const char* const field : {"topology", "levels", "rails"}) {
    const Json* here = kube::Find(more, field);
    const Json* there = kube::Find(all, field);
    if (here != nullptr && there != nullptr && *here == *there) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        FieldOf(part), ".", field, ": must be the same as in ", kTopologyKind, " ", kTopologyName));
  }
  for (const char* const field : {"linkGbps", "globalLinks"}) {
    if (kube::Find(more, field) == nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        FieldOf(part), ".", field, ": is allowed only in ", kTopologyKind, " ", kTopologyName));
  }
  const Json* domains = kube::Find(more, "domains");
  if (domains == nullptr || !domains->is_array() || !all.contains("domains") ||
      !all["domains"].is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(FieldOf(part), ".domains: must be a list"));
  }
  for (Json& domain : more["domains"]) all["domains"].push_back(std::move(domain));
  return absl::OkStatus();
}

// Returns the fault with the part that contains it.
absl::Status Blame(const std::vector<ModelPart>& parts, absl::Status fault) {
  for (const ModelPart& part : parts) {
    Json alone = kube::ParseJson(part.model).value_or(Json());
    if (alone.is_object()) alone.erase("globalLinks");  // these may lead to another part
    if (absl::StatusOr<FabricModel> model = Parse(alone, FieldOf(part)); !model.ok()) {
      return model.status();
    }
  }
  return fault;
}

}  // namespace

std::optional<ModelPart> ReadModelPart(const Json& object) {
  ModelPart part;
  part.name = kube::StringAt(object, {"metadata", "name"});
  if (part.name != kTopologyName && !absl::StartsWith(part.name, kPartPrefix)) return std::nullopt;
  const Json* model = kube::FindPath(object, {"spec", "model"});
  if (model != nullptr && !model->is_null()) part.model = kube::DumpJson(*model);
  return part;
}

absl::StatusOr<std::optional<FabricModel>> JoinModel(std::vector<ModelPart> parts) {
  std::erase_if(parts, [](const ModelPart& part) { return part.model.empty(); });
  if (parts.empty()) return std::nullopt;
  std::sort(parts.begin(), parts.end(), [](const ModelPart& a, const ModelPart& b) {
    return fabric::NaturalLess(a.name, b.name);
  });
  const auto first = std::find_if(parts.begin(), parts.end(),
                                  [](const ModelPart& part) { return part.name == kTopologyName; });
  if (first == parts.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(FieldOf(parts.front()), ": is a further part of a model; ", kTopologyKind, " ",
                     kTopologyName, " must have the first"));
  }
  std::rotate(parts.begin(), first, first + 1);
  absl::StatusOr<Json> all = kube::ParseJson(parts.front().model);
  if (!all.ok()) return all.status();
  for (size_t i = 1; i < parts.size(); ++i) {
    absl::StatusOr<Json> more = kube::ParseJson(parts[i].model);
    if (!more.ok()) return more.status();
    if (absl::Status added = Add(parts[i], *std::move(more), *all); !added.ok()) {
      return Blame({parts.front()}, added);
    }
  }
  absl::StatusOr<FabricModel> model =
      Parse(*all, parts.size() == 1 ? kField : absl::StrCat(kField, " of all parts"));
  if (model.ok()) return *std::move(model);
  return parts.size() == 1 ? model.status() : Blame(parts, model.status());
}

std::optional<StoredTopology> ReadStoredTopology(const Json& object) {
  std::optional<ModelPart> part = ReadModelPart(object);
  if (!part) return std::nullopt;
  StoredTopology stored;
  stored.part = *std::move(part);
  stored.version = kube::StringAt(object, {"metadata", "resourceVersion"});
  const Json* generation = kube::FindPath(object, {"metadata", "generation"});
  if (generation != nullptr && generation->is_number_integer()) {
    stored.generation = generation->get<int64_t>();
  }
  const Json* status = kube::Find(object, "status");
  if (status != nullptr && stored.part.name == kTopologyName) stored.status = *status;
  return stored;
}

const absl::StatusOr<std::optional<FabricModel>>& JoinedModel::Of(std::vector<ModelPart> parts) {
  if (parts != parts_) {
    model_ = JoinModel(parts);
    parts_ = std::move(parts);
  }
  return model_;
}

}  // namespace railhead::topology
