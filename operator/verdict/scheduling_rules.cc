// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "operator/verdict/rules.h"

namespace railhead::op::verdict {
namespace {

int64_t CountIn(const std::map<std::string, int64_t>& devices, const std::string& resource) {
  const auto found = devices.find(resource);
  return found == devices.end() ? 0 : found->second;
}

// What is down at a node, as far as its agent says.
std::string DownAt(const std::string& name, const NodeFacts& node, const std::string& resource) {
  std::vector<std::string> down;
  for (const NodeRail& rail : node.rails) {
    if (rail.usable) continue;
    down.push_back(absl::StrCat("rail ", rail.rail, " (", rail.device, "): ", rail.reason));
  }
  if (down.empty()) {
    return absl::StrCat("node ", name, " has ", CountIn(node.allocatable, resource), " of ",
                        CountIn(node.capacity, resource), " in order");
  }
  return absl::StrCat("node ", name, ", ", absl::StrJoin(down, ", "));
}

}  // namespace

void JudgeScheduling(const PodFacts& pod, const ClusterFacts& cluster, Findings& findings) {
  if (pod.unschedulable.empty() || cluster.nodes.empty()) return;
  for (const auto& [resource, asked] : DevicesOf(pod)) {
    // The scheduler's words; a pod that waits for something else is none of ours.
    if (!absl::StrContains(pod.unschedulable, absl::StrCat("Insufficient ", resource))) continue;
    int64_t most_healthy = 0;
    int64_t most = 0;
    const std::pair<const std::string, NodeFacts>* broken = nullptr;  // would have enough
    for (const auto& node : cluster.nodes) {
      most_healthy = std::max(most_healthy, CountIn(node.second.allocatable, resource));
      most = std::max(most, CountIn(node.second.capacity, resource));
      if (broken == nullptr && CountIn(node.second.capacity, resource) >= asked) broken = &node;
    }
    const std::string count = absl::StrCat(asked);
    if (most == 0) {
      findings.push_back(MakeFinding(Reason::kResourceUnknown, pod.name, "", {resource}));
    } else if (asked <= most_healthy) {
      findings.push_back(MakeFinding(Reason::kDevicesInUse, pod.name, "", {resource, count}));
    } else if (broken != nullptr) {
      findings.push_back(
          MakeFinding(Reason::kRailsDownAtNodes, pod.name, "",
                      {resource, count, DownAt(broken->first, broken->second, resource)}));
    } else {
      findings.push_back(MakeFinding(Reason::kTooManyDevices, pod.name, "",
                                     {resource, count, absl::StrCat(most)}));
    }
  }
}

}  // namespace railhead::op::verdict
