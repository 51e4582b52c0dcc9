// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "operator/verdict/rules.h"

namespace railhead::op::verdict {
namespace {

using Devices = std::set<std::pair<std::string, std::string>>;  // node and device

int64_t CountIn(const std::map<std::string, int64_t>& devices, const std::string& resource) {
  const auto found = devices.find(resource);
  return found == devices.end() ? 0 : found->second;
}

// Returns whether the scheduler's message names this resource, not one with a longer name.
bool Lacks(absl::string_view words, const std::string& resource) {
  const std::string lack = absl::StrCat("Insufficient ", resource);
  for (size_t at = words.find(lack); at != absl::string_view::npos; at = words.find(lack, at + 1)) {
    absl::string_view rest = words.substr(at + lack.size());
    absl::ConsumePrefix(&rest, ".");
    if (rest.empty() || rest[0] == ' ' || rest[0] == ',') return true;
  }
  return false;
}

// Returns the rails of a node that its agent reports as down, except recent losses.
std::vector<std::string> DownAt(const std::string& name, const NodeFacts& node,
                                const Devices& just_lost) {
  std::vector<std::string> down;
  for (const fabric::SeenRail& rail : node.rails) {
    if (rail.usable || just_lost.contains({name, rail.device})) continue;
    down.push_back(absl::StrCat("rail ", rail.rail, " (", rail.device, "): ", rail.reason));
  }
  return down;
}

// Marks the finding as transient while nodes with the resource may still come.
void SayWhileNodesMayCome(const JudgedPod& judged, const Cluster& cluster, PodFinding& finding) {
  if (cluster.may_grow() && judged.waiting < kUntilNodesCome) {
    MarkTransient("unless such nodes are being created", finding);
  } else if (!cluster.has_devices() && judged.waiting < kUntilAgentsCome) {
    MarkTransient("unless the node agents are still starting", finding);
  }
}

PodFinding RailsDown(const JudgedPod& judged, const Cluster& cluster, const std::string& resource,
                     const std::string& count, const std::string& name, const Devices& just_lost) {
  const NodeFacts& node = *cluster.FindNode(name);
  const std::vector<std::string> down = DownAt(name, node, just_lost);
  const std::string what =
      down.empty() ? absl::StrCat("node ", name, " has ", CountIn(node.allocatable, resource),
                                  " of ", CountIn(node.capacity, resource), " usable")
                   : absl::StrCat("node ", name, ", ", absl::StrJoin(down, ", "));
  PodFinding finding =
      MakeFinding(Reason::kRailsDownAtNodes, judged.pod->name, "", {resource, count, what});
  // An agent that starts again takes all devices away for a moment.
  if (down.empty() && judged.waiting < kUntilAgentsCome) {
    MarkTransient("unless its node agent is still starting", finding);
  }
  return finding;
}

}  // namespace

void JudgeScheduling(const JudgedPod& judged, const Cluster& cluster, const Devices& just_lost,
                     Findings& findings) {
  const PodFacts& pod = *judged.pod;
  if (pod.unschedulable.empty() || !cluster.knows_nodes()) return;
  for (const auto& [resource, asked] : DevicesOf(pod)) {
    // The scheduler's words; a pod that waits for something else is none of ours.
    if (!Lacks(pod.unschedulable, resource)) continue;
    const Offer* offer = cluster.FindOffer(resource);
    const std::string count = absl::StrCat(asked);
    if (offer == nullptr || offer->most == 0) {
      PodFinding finding = MakeFinding(Reason::kResourceUnknown, pod.name, "", {resource});
      SayWhileNodesMayCome(judged, cluster, finding);
      findings.push_back(std::move(finding));
    } else if (asked <= offer->most_healthy) {
      findings.push_back(MakeFinding(Reason::kDevicesInUse, pod.name, "", {resource, count}));
    } else if (asked <= offer->most) {
      findings.push_back(RailsDown(judged, cluster, resource, count, offer->roomiest, just_lost));
    } else {
      PodFinding finding = MakeFinding(Reason::kTooManyDevices, pod.name, "",
                                       {resource, count, absl::StrCat(offer->most)});
      SayWhileNodesMayCome(judged, cluster, finding);
      findings.push_back(std::move(finding));
    }
  }
}

}  // namespace railhead::op::verdict
