// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "operator/verdict/rules.h"

namespace railhead::op::verdict {
namespace {

// Returns whether the agent of the pod's node reports the device as unusable. The pod's own report,
// which users control, is not enough reason to repair a port.
bool NodeSaysSo(const NodeFacts* node, const std::string& device) {
  return node != nullptr &&
         std::any_of(node->rails.begin(), node->rails.end(),
                     [&device](const auto& rail) { return rail.device == device && !rail.usable; });
}

void JudgeGivenRail(const PodFacts& pod, const NodeFacts* node, const RankReport& rank,
                    const GivenRail& rail, Findings& findings) {
  // JudgeMemory has a more specific reason for memlock.
  if (rail.trouble.empty() || rail.cause == "memlock") return;
  const bool port_is_down = rail.cause == "port" && NodeSaysSo(node, rail.device);
  const Reason reason = rail.cause == "device_node" ? Reason::kDeviceNodeMissing
                        : port_is_down              ? Reason::kRailPortDown
                                                    : Reason::kRailUnusable;
  findings.push_back(MakeRailFinding(
      reason, pod.name, OnlyContainer(pod), {rail.rail, pod.node},
      {absl::StrCat(rank.rank), absl::StrCat(rail.rail), rail.device, rail.trouble, pod.node}));
}

void JudgeStart(const PodFacts& pod, const NodeFacts* node, const RankReport& rank,
                Findings& findings) {
  if (!rank.start.has_value()) return;
  const RankStart& start = *rank.start;
  // Jobs of one rank or one pod need no rail; jobs that request or allow TCP are checked by their
  // spec.
  if (start.world_size < 2 || start.transport == "shm" || start.fallback == "allow" ||
      start.requested == "tcp" || start.requested == "shm") {
    return;
  }
  if (!start.trouble.empty()) {
    findings.push_back(MakeFinding(Reason::kRailsNotGiven, pod.name, OnlyContainer(pod),
                                   {absl::StrCat(rank.rank), start.trouble}));
  }
  for (const GivenRail& rail : rank.given) JudgeGivenRail(pod, node, rank, rail, findings);
  if (start.transport == "tcp" && !rank.degraded.empty()) {
    findings.push_back(
        MakeFinding(Reason::kRdmaNotUsed, pod.name, OnlyContainer(pod), {rank.degraded}));
  }
}

// One rank without a secret is enough to know that its job has none.
void JudgeSecret(const PodFacts& pod, const RuntimeReport& report, Findings& findings) {
  for (const RankReport& rank : report.ranks) {
    if (!rank.start.has_value() || rank.start->unauthenticated.empty()) continue;
    findings.push_back(MakeFinding(Reason::kUnauthenticated, pod.name, OnlyContainer(pod),
                                   {absl::StrCat(rank.rank), rank.start->unauthenticated}));
    return;
  }
}

}  // namespace

void JudgeRuntime(const JudgedPod& judged, const Cluster& cluster, Findings& findings) {
  const PodFacts& pod = *judged.pod;
  if (judged.report == nullptr) return;
  JudgeSecret(pod, *judged.report, findings);
  if (TcpIsMeant(pod, cluster)) return;
  const NodeFacts* node = NodeOf(pod, cluster);
  for (const RankReport& rank : judged.report->ranks) JudgeStart(pod, node, rank, findings);
}

}  // namespace railhead::op::verdict
