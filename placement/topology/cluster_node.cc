// SPDX-License-Identifier: Apache-2.0
#include "placement/topology/cluster_node.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "fabric/discovery/source.h"
#include "fabric/node_facts/reader.h"
#include "placement/topology/cluster_fabric.h"
#include "placement/topology/published.h"

namespace railhead::topology {
namespace {

// Of an object that is mostly images and heartbeats, what the reader looks at.
kube::Json Reduced(const kube::Json& node) {
  kube::Json metadata = kube::Json::object();
  for (const char* field : {"name", "uid", "labels"}) {
    if (const kube::Json* value = kube::FindPath(node, {"metadata", field})) {
      metadata[field] = *value;
    }
  }
  const std::string facts =
      kube::StringAt(node, {"metadata", "annotations", fabric::kNodeFactsAnnotation});
  if (!facts.empty()) metadata["annotations"] = {{fabric::kNodeFactsAnnotation, facts}};
  kube::Json reduced = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", metadata}};
  if (const kube::Json* cordoned = kube::FindPath(node, {"spec", "unschedulable"})) {
    reduced["spec"] = {{"unschedulable", *cordoned}};
  }
  for (const char* field : {"allocatable", "conditions"}) {
    if (const kube::Json* value = kube::FindPath(node, {"status", field})) {
      reduced["status"][field] = *value;
    }
  }
  return reduced;
}

}  // namespace

std::optional<ClusterNode> ReadClusterNode(const kube::Json& node) {
  ClusterNode read;
  const std::string name = kube::StringAt(node, {"metadata", "name"});
  absl::StatusOr<fabric::Observations> seen =
      fabric::ReadSource(kube::DumpJson(Reduced(node)), name);
  if (seen.ok() && seen->nodes.size() == 1) {
    read.seen = std::move(seen->nodes[0]);
  } else {
    read.seen.name = name;
    read.seen.uid = kube::StringAt(node, {"metadata", "uid"});
    read.seen.facts_fault = std::string(seen.status().message());
  }
  const kube::Json* labels = kube::FindPath(node, {"metadata", "labels"});
  if (labels != nullptr && labels->is_object()) {
    for (const auto& [key, value] : labels->items()) {
      if (absl::StartsWith(key, kLabelPrefix) && value.is_string()) {
        read.published[key] = value.get<std::string>();
      }
    }
  }
  const bool fabric = InFabric(read.seen) || !read.seen.facts_fault.empty();
  if (!fabric && read.published.empty()) return std::nullopt;
  return read;
}

}  // namespace railhead::topology
