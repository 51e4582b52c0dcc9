// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/pools.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

constexpr const char* kPoolLabels[] = {"karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup",
                                       "cloud.google.com/gke-nodepool",
                                       "kubernetes.azure.com/agentpool"};
constexpr char kUnseen[] = "autoscalers do not see gated pods: ";

// Autoscalers see released pods that the scheduler cannot place.
std::string OrRelease() {
  return absl::StrCat(", or let its pods start one by one after a timeout (", kTimeout, ", ",
                      kTimeoutPolicy, ": release)");
}

}  // namespace

std::string PoolOf(const LabelSet& labels) {
  for (const char* const key : kPoolLabels) {
    const std::string* value = labels.Find(key);
    if (value != nullptr) return absl::StrCat(key, "=", *value);
  }
  return "";
}

std::string AboutPools(const NodeTree& tree, const std::vector<NodeOutlook>& outlook,
                       int64_t missing) {
  std::map<std::string, int> pods_of_node;  // by pool, of its roomiest node
  bool any = false;
  for (size_t i = 0; i < outlook.size(); ++i) {
    if (outlook[i].at_best <= 0) continue;
    any = true;
    const std::string pool = PoolOf(tree.nodes[i]->labels);
    if (pool.empty()) continue;
    int& pods = pods_of_node[pool];
    pods = std::max(pods, outlook[i].at_best);
  }
  if (!any) {
    return absl::StrCat(
        kUnseen, "if a pool has larger nodes, or no nodes now, scale it up yourself", OrRelease());
  }
  const std::pair<const std::string, int>* best = nullptr;
  for (const auto& pool : pods_of_node) {
    if (best == nullptr || pool.second > best->second) best = &pool;
  }
  if (best == nullptr || missing <= 0) return "";
  const int64_t nodes = (missing + best->second - 1) / best->second;
  return absl::StrCat(kUnseen, "if the pool ", best->first, " can grow, scale it up by ", nodes,
                      nodes == 1 ? " node" : " nodes", OrRelease());
}

}  // namespace railhead::op::gangs
