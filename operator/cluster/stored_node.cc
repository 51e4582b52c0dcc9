// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster/stored_node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "fabric/discovery/place_labels.h"
#include "fabric/node_facts/reader.h"
#include "kube/elements.h"
#include "operator/verdict/node_facts.h"

namespace railhead::op {
namespace {

using kube::Json;
using kube::StringAt;

constexpr absl::string_view kOurs = "railhead.io/";
constexpr absl::string_view kHostname = "kubernetes.io/hostname";
// A plugin that shares HCAs offers a configured number, which is unrelated to rails.
constexpr int kMostRails = 32;
constexpr int kMostGpus = 1024;

bool IsOfGpus(const gangs::Resources::value_type& resource) {
  return gangs::IsGpus(resource.first);
}

bool IsReady(const Json& node) {
  const Json* ready = kube::FindCondition(node, "Ready");
  return ready == nullptr || StringAt(*ready, {"status"}) == "True";
}

// Returns whether kubelet lists GPUs; it offers 0 of them while their plugin is down.
bool ListsGpus(const Json& node) {
  const Json* allocatable = kube::FindPath(node, {"status", "allocatable"});
  if (allocatable == nullptr || !allocatable->is_object()) return false;
  const auto items = allocatable->items();
  return std::any_of(items.begin(), items.end(),
                     [](const auto& item) { return gangs::IsGpus(item.key()); });
}

std::vector<fabric::SeenPlace> PlacesIn(Labels labels) {
  std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
  return fabric::PlacesOf(labels);
}

}  // namespace

StoredNode ReadNode(const Json& node, const NodeReading& reading) {
  const RdmaResources& rdma = reading.rdma_resources;
  StoredNode stored;
  stored.name = StringAt(node, {"metadata", "name"});
  stored.uid = StringAt(node, {"metadata", "uid"});
  Labels labels = LabelsOf(node);
  stored.facts = verdict::NodeFactsOf(node, rdma);
  stored.allocatable = gangs::AllocatableOf(node);
  stored.hcas = gangs::HcasIn(stored.allocatable, rdma);
  const Json* spec = kube::Find(node, "spec");
  const bool in_fabric = HasRdma(stored) || std::any_of(stored.allocatable.begin(),
                                                        stored.allocatable.end(), IsOfGpus);
  if (in_fabric && (reading.gangs || reading.topology)) {
    stored.places = PlacesIn(labels);
    const Json* cordoned = spec == nullptr ? nullptr : kube::Find(*spec, "unschedulable");
    stored.cordoned = cordoned != nullptr && *cordoned == true;
    stored.ready = IsReady(node);
    stored.offers_gpus = ListsGpus(node);
  }
  if (reading.gangs && HasRdma(stored)) {
    if (const auto hostname = labels.find(std::string(kHostname)); hostname != labels.end()) {
      stored.hostname = hostname->second;
    }
    stored.labels = labels;
    if (spec != nullptr) stored.taints = gangs::ReadTaints(*spec);
    stored.used_rails = fabric::ReadRailsInUse(
        StringAt(node, {"metadata", "annotations", fabric::kRailsInUseAnnotation}));
    return stored;
  }
  std::erase_if(labels, [](const auto& label) { return !absl::StartsWith(label.first, kOurs); });
  stored.labels = labels;
  std::erase_if(stored.allocatable, [&reading](const auto& resource) {
    return !reading.topology || !IsOfGpus(resource);
  });
  return stored;
}

bool HasRdma(const StoredNode& node) {
  return node.hcas > 0 || node.facts.announced || !node.facts.fault.empty();
}

fabric::SeenNode SeenNodeOf(const StoredNode& node) {
  fabric::SeenNode seen;
  seen.name = node.name;
  seen.uid = node.uid;
  seen.where = node.name;
  seen.gpus = std::min(gangs::GpusIn(node.allocatable), kMostGpus);
  seen.offers_gpus = node.offers_gpus;
  seen.hcas = node.hcas > kMostRails ? 0 : node.hcas;
  if (node.facts.announced) seen.rails = node.facts.rails;
  seen.facts_fault = node.facts.fault;
  seen.places = node.places;
  return seen;
}

}  // namespace railhead::op
