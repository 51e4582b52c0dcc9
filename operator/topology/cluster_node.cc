// SPDX-License-Identifier: Apache-2.0
#include "operator/topology/cluster_node.h"

#include "absl/strings/match.h"
#include "placement/topology/cluster_fabric.h"
#include "placement/topology/published.h"

namespace railhead::topology {

std::optional<ClusterNode> ClusterNodeOf(const op::StoredNode& node) {
  ClusterNode read;
  read.seen = op::SeenNodeOf(node);
  // If kubelet lists GPUs, its number counts, even 0: pods can get no others.
  if (!read.seen.offers_gpus) read.seen.gpus = node.facts.gpus;
  read.seen.hcas = node.hcas;  // even if these are shares
  if (node.cordoned) {
    read.seen.unschedulable = "cordoned";
  } else if (!node.ready) {
    read.seen.unschedulable = "not ready";
  }
  for (const auto& [key, value] : node.labels) {
    if (absl::StartsWith(key, kLabelPrefix)) read.published[key] = value;
  }
  const bool fabric = InFabric(read.seen) || !read.seen.facts_fault.empty();
  if (!fabric && read.published.empty()) return std::nullopt;
  return read;
}

}  // namespace railhead::topology
