// SPDX-License-Identifier: Apache-2.0
//
// Whatever stands in the objects of a cluster, there is a fabric or a reason why not, its status is
// bounded, and it is not written twice.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "fabric/discovery/source.h"
#include "kube/json.h"
#include "kube/yaml.h"
#include "placement/topology/cluster_fabric.h"
#include "placement/topology/published.h"
#include "placement/topology/stored_topology.h"
#include "placement/topology/topology_status.h"

namespace railhead::topology {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void Run(absl::string_view text) {
  const absl::StatusOr<std::vector<kube::Json>> documents = kube::ParseYaml(text);
  if (!documents.ok()) return;
  std::vector<fabric::SeenNode> nodes;
  StoredTopology stored;
  std::vector<ModelPart> parts;
  for (const kube::Json& document : *documents) {
    if (kube::StringAt(document, {"kind"}) == kTopologyKind) {
      auto read = ReadStoredTopology(document);
      if (!read) continue;
      parts.push_back(read->part);
      if (read->part.name == kTopologyName) stored = *std::move(read);
    } else if (auto seen = fabric::ReadSource(kube::DumpJson(document), "node"); seen.ok()) {
      for (fabric::SeenNode& node : seen->nodes) nodes.push_back(std::move(node));
    }
  }
  const auto given = JoinModel(parts);
  Require(given.ok() || !given.status().message().empty());
  const TopologyReport report = {
      stored.generation, FindFabric(nodes, given.ok() ? *given : std::nullopt), std::nullopt};
  if (!report.fabric.ok()) {
    Require(!report.fabric.status().message().empty());
  } else if (const auto labels = LabelsOfPlaces(report.fabric->found.model); labels.ok()) {
    Require(LabelsByNode(report.fabric->found.model, *labels).size() ==
            report.fabric->found.model.nodes.size());
  }
  const std::optional<kube::Json> object = StatusToApply(stored, report, absl::UnixEpoch());
  if (!object) return;
  Require(kube::DumpJson(*object).size() < kMaxStatus + 8192);
  stored.status = (*object)["status"];
  Require(!StatusToApply(stored, report, absl::UnixEpoch()).has_value());
}

}  // namespace
}  // namespace railhead::topology

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::topology::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
