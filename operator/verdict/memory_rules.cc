// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "operator/verdict/rules.h"

namespace railhead::op::verdict {
namespace {

std::string FixOf(const PodFacts& pod, bool non_root) {
  const std::string at = pod.node.empty() ? "its node" : absl::StrCat("node ", pod.node);
  return non_root ? absl::StrCat(
                        "set devicePlugin.memlock in Railhead's chart, or raise LimitMEMLOCK "
                        "of the container runtime's service on ",
                        at,
                        " (IPC_LOCK has no effect for a user other than root), or run as root with "
                        "the capability IPC_LOCK")
                  : absl::StrCat(
                        "add IPC_LOCK to securityContext.capabilities.add, or raise "
                        "LimitMEMLOCK of the container runtime's service on ",
                        at);
}

// Uses the limits that ranks measured. Returns false if no rank reported any.
bool JudgeMeasuredMemlock(const JudgedPod& judged, Findings& findings) {
  const RuntimeReport* start = StartOf(judged);
  if (start == nullptr) return false;
  const PodFacts& pod = *judged.pod;
  const bool non_root = std::all_of(pod.terms->containers.begin(), pod.terms->containers.end(),
                                    [](const ContainerFacts& c) { return c.non_root; });
  bool told = false;
  for (const RankReport& rank : start->ranks) {
    if (!rank.memlock_limit.has_value()) continue;
    told = true;
    const double limit = *rank.memlock_limit;
    const double least = rank.memlock_least.value_or(0);
    const double wanted = rank.memlock_wanted.value_or(0);
    if (limit >= least && limit >= wanted) continue;
    findings.push_back(
        MakeFinding(limit < least ? Reason::kMemlockTooLow : Reason::kMemlockTight, pod.name,
                    OnlyContainer(pod),
                    {Bytes(limit), Bytes(limit < least ? least : wanted), FixOf(pod, non_root)}));
  }
  return told;
}

void JudgeMemlock(const JudgedPod& judged, const Cluster& cluster, Findings& findings) {
  if (JudgeMeasuredMemlock(judged, findings) || ReportMayCome(judged)) return;
  // The agent knows what its node gives to containers, and not what is given to this one.
  if (cluster.settings().memlock_raised) return;
  const PodFacts& pod = *judged.pod;
  const NodeFacts* node = NodeOf(pod, cluster);
  if (node == nullptr || !node->memlock.has_value() || *node->memlock >= kLeastMemlockForGpus) {
    return;
  }
  for (const ContainerFacts& container : pod.terms->containers) {
    // Containers without GPUs may need very little; their runtime reports what it needs.
    if (container.gpus == 0 || !container.memlock_applies) continue;
    findings.push_back(MakeFinding(
        Reason::kMemlockTooLow, pod.name, container.name,
        {Bytes(*node->memlock), Bytes(kLeastMemlockForGpus), FixOf(pod, container.non_root)}));
  }
}

std::optional<double> MeasuredSharedMemory(const JudgedPod& judged) {
  std::optional<double> least;
  // With several containers, it is unknown which one reports.
  const RuntimeReport* start = StartOf(judged);
  if (start == nullptr || judged.pod->terms->containers.size() != 1) return least;
  for (const RankReport& rank : start->ranks) {
    if (!rank.shared_memory.has_value()) continue;
    least = std::min(least.value_or(*rank.shared_memory), *rank.shared_memory);
  }
  return least;
}

}  // namespace

void JudgeMemory(const JudgedPod& judged, const Cluster& cluster, Findings& findings) {
  if (!TcpIsMeant(*judged.pod, cluster)) JudgeMemlock(judged, cluster, findings);
  const std::optional<double> measured = MeasuredSharedMemory(judged);
  for (const ContainerFacts& container : judged.pod->terms->containers) {
    if (container.shared_memory_assumed && ReportMayCome(judged)) continue;
    const std::optional<double> size = measured.has_value() ? measured : container.shared_memory;
    // A single GPU needs no shared memory between GPUs.
    if (!size.has_value() || *size > kUsualSharedMemory || container.gpus < 2) continue;
    findings.push_back(MakeFinding(Reason::kSharedMemoryTooSmall, judged.pod->name, container.name,
                                   {Bytes(*size), absl::StrCat(container.gpus)}));
  }
}

}  // namespace railhead::op::verdict
