// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/stored_node.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "fabric/discovery/place_labels.h"
#include "fabric/node_facts/reader.h"
#include "kube/elements.h"
#include "operator/gangs/names.h"

namespace railhead::op::gangs {
namespace {

using kube::Find;
using kube::Json;
using kube::StringAt;

// A plugin that shares HCAs offers a number that somebody has chosen: it says nothing of rails.
constexpr int kMostRails = 32;

bool IsReady(const Json& node) {
  const Json* ready = kube::FindCondition(node, "Ready");
  return ready == nullptr || StringAt(*ready, {"status"}) == "True";
}

}  // namespace

std::optional<StoredNode> ReadStoredNode(const Json& node, const RdmaResources& rdma) {
  const std::string facts =
      StringAt(node, {"metadata", "annotations", fabric::kNodeFactsAnnotation});
  StoredNode stored;
  stored.allocatable = AllocatableOf(node);
  const int hcas = HcasIn(stored.allocatable, rdma);
  if (facts.empty() && hcas == 0) return std::nullopt;
  stored.labels = LabelsOf(node);
  if (const auto hostname = stored.labels.find(kHostname); hostname != stored.labels.end()) {
    stored.hostname = hostname->second;
  }
  if (const Json* spec = Find(node, "spec"); spec != nullptr) {
    stored.taints = ReadTaints(*spec);
    const Json* cordoned = Find(*spec, "unschedulable");
    stored.cordoned = cordoned != nullptr && *cordoned == true;
  }
  stored.ready = IsReady(node);
  stored.seen.name = StringAt(node, {"metadata", "name"});
  stored.seen.where = stored.seen.name;
  stored.seen.gpus = std::min(GpusIn(stored.allocatable), 1024);
  stored.seen.hcas = hcas > kMostRails ? 0 : hcas;
  Labels told = stored.labels;
  std::erase_if(told, [](const auto& label) { return label.second.empty(); });
  stored.seen.places = fabric::PlacesOf(told);
  if (!facts.empty()) {
    absl::StatusOr<fabric::NodeFacts> read = fabric::ReadNodeFacts(facts, stored.seen.name);
    if (read.ok()) {
      stored.seen.rails = std::move(read->rails);
    } else {
      stored.seen.facts_fault = std::string(read.status().message());
    }
  }
  stored.used_rails = fabric::ReadRailsInUse(
      StringAt(node, {"metadata", "annotations", fabric::kRailsInUseAnnotation}));
  return stored;
}

}  // namespace railhead::op::gangs
