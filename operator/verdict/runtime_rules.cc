// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "operator/verdict/rules.h"

namespace railhead::op::verdict {
namespace {

// Why a rail is down, as its node's agent says; empty if it says nothing.
std::string WhyDown(const NodeFacts* node, const std::string& device) {
  if (node == nullptr) return "";
  for (const NodeRail& rail : node->rails) {
    if (rail.device == device && !rail.usable) return absl::StrCat(": ", rail.reason);
  }
  return "";
}

void JudgeUsedRails(const PodFacts& pod, const RankReport& rank, const NodeFacts* node,
                    Findings& findings) {
  for (const UsedRail& rail : rank.used) {
    if (rail.up) continue;
    findings.push_back(
        MakeFinding(Reason::kRailDown, pod.name, OnlyContainer(pod),
                    {absl::StrCat(rail.rail), rail.device, pod.node, WhyDown(node, rail.device)}));
  }
}

void JudgeGivenRail(const PodFacts& pod, const RankReport& rank, const GivenRail& rail,
                    Findings& findings) {
  // For memlock there is a reason with more to say.
  if (rail.trouble.empty() || rail.cause == "memlock") return;
  const Reason reason = rail.cause == "device_node" ? Reason::kDeviceNodeMissing
                        : rail.cause == "port"      ? Reason::kRailPortDown
                                                    : Reason::kRailUnusable;
  findings.push_back(MakeFinding(
      reason, pod.name, OnlyContainer(pod),
      {absl::StrCat(rank.rank), absl::StrCat(rail.rail), rail.device, rail.trouble, pod.node}));
}

void JudgeStart(const PodFacts& pod, const RankReport& rank, Findings& findings) {
  if (!rank.start.has_value()) return;
  const RankStart& start = *rank.start;
  // Who is alone, or together with all in one pod, needs no rail; and who chose TCP was judged by
  // what he said.
  if (start.world_size < 2 || start.transport == "shm" || start.fallback == "allow" ||
      start.requested == "tcp" || start.requested == "shm") {
    return;
  }
  if (!start.trouble.empty()) {
    findings.push_back(MakeFinding(Reason::kRailsNotGiven, pod.name, OnlyContainer(pod),
                                   {absl::StrCat(rank.rank), start.trouble}));
  }
  for (const GivenRail& rail : rank.given) JudgeGivenRail(pod, rank, rail, findings);
  if (start.transport == "tcp" && !rank.degraded.empty()) {
    findings.push_back(
        MakeFinding(Reason::kRdmaNotUsed, pod.name, OnlyContainer(pod), {rank.degraded}));
  }
}

// Without a runtime that tells, a pod surely has the rail that is down when it has all of its node.
void JudgeByNode(const PodFacts& pod, const NodeFacts* node, Findings& findings) {
  if (node == nullptr || pod.running_since == absl::InfiniteFuture() || node->rails.empty()) return;
  const std::map<std::string, int64_t> devices = DevicesOf(pod);
  if (devices.size() != 1 || devices.begin()->second != static_cast<int64_t>(node->rails.size())) {
    return;
  }
  for (const NodeRail& rail : node->rails) {
    if (rail.usable) continue;
    findings.push_back(MakeFinding(Reason::kRailDown, pod.name, "",
                                   {absl::StrCat(rail.rail), rail.device, pod.node,
                                    rail.reason.empty() ? "" : absl::StrCat(": ", rail.reason)}));
  }
}

}  // namespace

void JudgeRuntime(const JudgedPod& judged, const ClusterFacts& cluster, Findings& findings) {
  const PodFacts& pod = judged.pod;
  const NodeFacts* node = NodeOf(pod, cluster);
  const bool tcp = TcpIsMeant(pod, cluster);
  if (!judged.report.has_value()) {
    if (!tcp) JudgeByNode(pod, node, findings);
    return;
  }
  for (const RankReport& rank : judged.report->ranks) {
    JudgeUsedRails(pod, rank, node, findings);
    if (!tcp) JudgeStart(pod, rank, findings);
  }
}

}  // namespace railhead::op::verdict
