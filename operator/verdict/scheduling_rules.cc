// SPDX-License-Identifier: Apache-2.0
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

void JudgeScheduling(const PodFacts& pod, const Cluster& cluster, Findings& findings) {
  if (pod.unschedulable.empty() || !cluster.knows_nodes()) return;
  for (const auto& [resource, asked] : DevicesOf(pod)) {
    // The scheduler's words; a pod that waits for something else is none of ours.
    if (!absl::StrContains(pod.unschedulable, absl::StrCat("Insufficient ", resource))) continue;
    const Offer* offer = cluster.FindOffer(resource);
    const std::string count = absl::StrCat(asked);
    if (offer == nullptr || offer->most == 0) {
      findings.push_back(MakeFinding(Reason::kResourceUnknown, pod.name, "", {resource}));
    } else if (asked <= offer->most_healthy) {
      findings.push_back(MakeFinding(Reason::kDevicesInUse, pod.name, "", {resource, count}));
    } else if (asked <= offer->most) {
      const NodeFacts& broken = *cluster.FindNode(offer->roomiest);
      findings.push_back(MakeFinding(Reason::kRailsDownAtNodes, pod.name, "",
                                     {resource, count, DownAt(offer->roomiest, broken, resource)}));
    } else {
      findings.push_back(MakeFinding(Reason::kTooManyDevices, pod.name, "",
                                     {resource, count, absl::StrCat(offer->most)}));
    }
  }
}

}  // namespace railhead::op::verdict
