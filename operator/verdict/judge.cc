// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/judge.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "absl/strings/str_format.h"
#include "operator/verdict/rules.h"

namespace railhead::op::verdict {

std::vector<PodFinding> Judge(const JobFacts& job, const Cluster& cluster) {
  Findings findings;
  Pods pods;
  for (const JudgedPod& judged : job.pods) {
    if (judged.pod->finished) continue;
    pods.push_back(&judged);
    JudgeScheduling(judged, cluster, job.just_lost, findings);
    JudgeSpec(judged, cluster, findings);
    JudgeMemory(judged, cluster, findings);
    JudgeRuntime(judged, cluster, findings);
  }
  JudgeLostRails(pods, cluster, job, findings);
  if (job.comparable && AreAllThere(pods)) JudgeTogether(pods, cluster, job.one_program, findings);
  const auto key = [](const PodFinding& finding) {
    return std::make_tuple(finding.severity == Severity::kWarn, absl::string_view(finding.pod),
                           finding.reason, absl::string_view(finding.part));
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const PodFinding& a, const PodFinding& b) { return key(a) < key(b); });
  findings.erase(
      std::unique(findings.begin(), findings.end(),
                  [&](const PodFinding& a, const PodFinding& b) { return key(a) == key(b); }),
      findings.end());
  return findings;
}

bool ReportMayCome(const JudgedPod& judged) {
  if (judged.heard || judged.learned != nullptr || judged.pod->metrics_port == 0) return false;
  // A pod not scraped since its start may have reported to another replica, and ended since.
  return !judged.from_start || judged.silence < kSilence;
}

const RuntimeReport* StartOf(const JudgedPod& judged) {
  return judged.learned != nullptr ? judged.learned.get() : judged.report.get();
}

std::map<std::string, int64_t> DevicesOf(const PodFacts& pod) {
  // In the order in which they start. Init containers end before the next starts, but for sidecars,
  // which stay beside all that come after them.
  std::map<std::string, int64_t> running;
  std::map<std::string, int64_t> most;
  for (const ContainerFacts& container : pod.terms->containers) {
    for (const auto& [name, count] : container.devices) {
      const int64_t now = running[name] + count;
      most[name] = std::max(most[name], now);
      if (!container.init) running[name] = now;
    }
  }
  return most;
}

const ProfileFacts* ProfileOf(const PodFacts& pod, const Cluster& cluster) {
  return pod.terms->profile.empty() ? nullptr : cluster.FindProfile(pod.terms->profile);
}

const NodeFacts* NodeOf(const PodFacts& pod, const Cluster& cluster) {
  return cluster.FindNode(pod.node);
}

bool TcpIsMeant(const PodFacts& pod, const Cluster& cluster) {
  const ProfileFacts* profile = ProfileOf(pod, cluster);
  if (profile != nullptr &&
      (profile->fabric == Fabric::kTcp || profile->require_rdma == RequireRdma::kAllow)) {
    return true;
  }
  return std::any_of(pod.terms->containers.begin(), pod.terms->containers.end(),
                     [](const ContainerFacts& c) {
                       const auto fallback = c.environment.find("RAILHEAD_FALLBACK");
                       return fallback != c.environment.end() && fallback->second == "allow";
                     });
}

absl::string_view OnlyContainer(const PodFacts& pod) {
  return pod.terms->containers.size() == 1 ? absl::string_view(pod.terms->containers.front().name)
                                           : "";
}

std::string Bytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrFormat("%.0f B", bytes)
                   : absl::StrFormat("%.1f %s", bytes, kUnits[unit]);
}

}  // namespace railhead::op::verdict
