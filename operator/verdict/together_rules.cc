// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "operator/verdict/rules.h"

namespace railhead::op::verdict {
namespace {

// A pod that differs, and one of those that do not.
struct Odd {
  const JudgedPod* pod;
  std::string value;
  const JudgedPod* other;
  std::string usual;
};

// The pods whose value is not that of most; of as many, the value of the first pod is right. Pods
// without a value have no say.
std::vector<Odd> OddOnes(const Pods& pods,
                         const std::function<std::optional<std::string>(const JudgedPod&)>& value) {
  std::vector<std::pair<const JudgedPod*, std::string>> known;
  std::map<std::string, int> counts;
  for (const JudgedPod* pod : pods) {
    std::optional<std::string> its = value(*pod);
    if (!its.has_value()) continue;
    ++counts[*its];
    known.emplace_back(pod, *std::move(its));
  }
  std::vector<Odd> odd;
  if (counts.size() < 2) return odd;
  const auto usual = std::max_element(
      known.begin(), known.end(),
      [&](const auto& a, const auto& b) { return counts[a.second] < counts[b.second]; });
  for (const auto& [pod, its] : known) {
    if (its != usual->second) odd.push_back({pod, its, usual->first, usual->second});
  }
  return odd;
}

void JudgeProfiles(const Pods& pods, Findings& findings) {
  const auto stamp = [](const JudgedPod& judged) -> std::optional<std::string> {
    const PodFacts& pod = *judged.pod;
    if (!pod.admitted) return std::nullopt;
    return pod.profile.empty() ? "none" : absl::StrCat(pod.profile, "@", pod.generation);
  };
  for (const Odd& odd : OddOnes(pods, stamp)) {
    findings.push_back(MakeFinding(Reason::kProfilesDiffer, odd.pod->pod->name, "",
                                   {odd.value, odd.other->pod->name, odd.usual}));
  }
}

// What ranks of one job must do alike, or they wait for each other or drop each other's packets.
void JudgeEnvironment(const Pods& pods, Findings& findings) {
  for (const char* name : {"NCCL_ALGO", "NCCL_IB_DISABLE", "NCCL_IB_SL", "NCCL_IB_TC", "NCCL_NET",
                           "NCCL_PROTO", "RAILHEAD_ALGO", "RAILHEAD_IB_SL", "RAILHEAD_IB_TC"}) {
    const auto value = [name](const JudgedPod& judged) -> std::optional<std::string> {
      for (const ContainerFacts& container : judged.pod->containers) {
        const auto found = container.environment.find(name);
        if (found != container.environment.end()) return found->second;
      }
      return std::nullopt;
    };
    for (const Odd& odd : OddOnes(pods, value)) {
      findings.push_back(MakeFinding(Reason::kEnvironmentDiffers, odd.pod->pod->name, "",
                                     {name, odd.value, odd.other->pod->name, odd.usual}));
    }
  }
}

bool JudgeDeviceCounts(const Pods& pods, const Cluster& cluster, Findings& findings) {
  const auto count = [&](const JudgedPod& judged) -> std::optional<std::string> {
    if (TcpIsMeant(*judged.pod, cluster)) return std::nullopt;
    int64_t sum = 0;
    for (const auto& [name, number] : DevicesOf(*judged.pod)) sum += number;
    return absl::StrCat(sum);
  };
  const std::vector<Odd> odd_ones = OddOnes(pods, count);
  for (const Odd& odd : odd_ones) {
    findings.push_back(MakeFinding(Reason::kDeviceCountsDiffer, odd.pod->pod->name, "",
                                   {odd.value, odd.other->pod->name, odd.usual}));
  }
  return !odd_ones.empty();
}

// The first rank that takes part in RDMA between pods; null if none does.
const RankReport* RdmaRank(const JudgedPod& judged) {
  if (judged.report == nullptr) return nullptr;
  for (const RankReport& rank : judged.report->ranks) {
    if (rank.start.has_value() && rank.start->world_size > 1 && rank.start->transport != "shm" &&
        rank.start->fallback != "allow" && !rank.given.empty()) {
      return &rank;
    }
  }
  return nullptr;
}

void JudgeRails(const Pods& pods, Findings& findings) {
  const auto rails = [](const JudgedPod& judged) -> std::optional<std::string> {
    const RankReport* rank = RdmaRank(judged);
    if (rank == nullptr) return std::nullopt;
    return absl::StrJoin(rank->given, ", ", [](std::string* out, const GivenRail& rail) {
      absl::StrAppend(out, rail.rail);
    });
  };
  for (const Odd& odd : OddOnes(pods, rails)) {
    findings.push_back(
        MakeFinding(Reason::kRailsDiffer, odd.pod->pod->name, "",
                    {absl::StrCat(RdmaRank(*odd.pod)->rank), odd.value,
                     absl::StrCat(RdmaRank(*odd.other)->rank), odd.other->pod->name, odd.usual}));
  }
}

// The one link layer of all rails of a pod, or else of its node.
std::optional<std::string> LinkLayerOf(const JudgedPod& judged, const Cluster& cluster) {
  if (TcpIsMeant(*judged.pod, cluster)) return std::nullopt;
  std::set<std::string> layers;
  if (const RankReport* rank = RdmaRank(judged); rank != nullptr) {
    for (const GivenRail& rail : rank->given) {
      if (!rail.link_layer.empty()) layers.insert(rail.link_layer);
    }
    return layers.size() == 1 ? std::optional<std::string>(*layers.begin()) : std::nullopt;
  }
  const NodeFacts* node = NodeOf(*judged.pod, cluster);
  if (node == nullptr || ReportMayCome(judged) ||
      (node->link_layer != "InfiniBand" && node->link_layer != "Ethernet")) {
    return std::nullopt;
  }
  return node->link_layer;
}

bool JudgeLinkLayers(const Pods& pods, const Cluster& cluster, Findings& findings) {
  const std::vector<Odd> odd_ones =
      OddOnes(pods, [&](const JudgedPod& judged) { return LinkLayerOf(judged, cluster); });
  for (const Odd& odd : odd_ones) {
    findings.push_back(MakeFinding(
        Reason::kLinkLayerMixed, odd.pod->pod->name, "",
        {odd.value, absl::StrCat("node ", odd.pod->pod->node), odd.other->pod->name, odd.usual}));
  }
  return !odd_ones.empty();
}

const GivenRail* WorkingRail(const JudgedPod& judged, int number) {
  const RankReport* rank = RdmaRank(judged);
  if (rank == nullptr) return nullptr;
  for (const GivenRail& rail : rank->given) {
    if (rail.rail == number && rail.trouble.empty()) return &rail;
  }
  return nullptr;
}

// MTU and rate of every rail. Of a pod the first rail that differs is named.
void JudgePorts(const Pods& pods, Findings& findings) {
  std::set<int> numbers;
  for (const JudgedPod* pod : pods) {
    if (const RankReport* rank = RdmaRank(*pod); rank != nullptr) {
      for (const GivenRail& rail : rank->given) numbers.insert(rail.rail);
    }
  }
  std::set<std::pair<const JudgedPod*, Reason>> named;
  const auto compare = [&](int number, Reason reason, auto value) {
    const auto of_pod = [&](const JudgedPod& judged) -> std::optional<std::string> {
      const GivenRail* rail = WorkingRail(judged, number);
      return rail == nullptr ? std::nullopt : value(*rail);
    };
    for (const Odd& odd : OddOnes(pods, of_pod)) {
      if (!named.insert({odd.pod, reason}).second) continue;
      findings.push_back(MakeRailFinding(
          reason, odd.pod->pod->name, OnlyContainer(*odd.pod->pod), {number, odd.pod->pod->node},
          {absl::StrCat(number), WorkingRail(*odd.pod, number)->device, odd.value,
           odd.other->pod->name, odd.usual}));
    }
  };
  for (const int number : numbers) {
    compare(number, Reason::kMtuDiffers, [](const GivenRail& rail) {
      return rail.mtu == 0 ? std::nullopt : std::optional<std::string>(absl::StrCat(rail.mtu));
    });
    compare(number, Reason::kRateDiffers, [](const GivenRail& rail) {
      return rail.rate.empty() ? std::nullopt : std::optional<std::string>(rail.rate);
    });
  }
}

// A pod that says nothing while others do and know of ranks that nobody has seen. `explained`: pods
// of which it is known why.
void JudgeSilence(const Pods& pods, const std::set<const JudgedPod*>& explained,
                  Findings& findings) {
  std::set<std::pair<std::string, int>> seen;
  std::map<std::string, int> worlds;
  int reporting = 0;
  for (const JudgedPod* judged : pods) {
    if (judged->report == nullptr || judged->report->ranks.empty()) continue;
    ++reporting;
    for (const RankReport& rank : judged->report->ranks) {
      seen.emplace(rank.job, rank.rank);
      if (rank.start.has_value()) worlds[rank.job] = rank.start->world_size;
    }
  }
  int64_t ranks = 0;
  for (const auto& [job, size] : worlds) ranks += size;
  if (reporting == 0 || ranks <= static_cast<int64_t>(seen.size())) return;
  for (const JudgedPod* judged : pods) {
    const PodFacts& pod = *judged->pod;
    if (judged->report != nullptr || judged->heard || judged->silence < kSilence ||
        explained.contains(judged)) {
      continue;
    }
    findings.push_back(MakeFinding(Reason::kRankSilent, pod.name, OnlyContainer(pod),
                                   {absl::StrCat(pod.metrics_port), absl::StrCat(reporting)}));
  }
}

// The pods that have a port in common with an earlier one.
std::set<const JudgedPod*> JudgeHostPorts(const Pods& pods, Findings& findings) {
  std::set<const JudgedPod*> sharing;
  std::map<std::pair<std::string, int>, const JudgedPod*> taken;
  for (const JudgedPod* judged : pods) {
    const PodFacts& pod = *judged->pod;
    if (!pod.host_network || pod.node.empty() || pod.metrics_port == 0) continue;
    const auto [first, fresh] = taken.try_emplace({pod.node, pod.metrics_port}, judged);
    if (fresh) continue;
    sharing.insert({judged, first->second});  // whoever came first has the port
    findings.push_back(
        MakeFinding(Reason::kMetricsPortShared, pod.name, OnlyContainer(pod),
                    {pod.node, absl::StrCat(pod.metrics_port), first->second->pod->name}));
  }
  return sharing;
}

}  // namespace

void JudgeTogether(const Pods& pods, const Cluster& cluster, Findings& findings) {
  JudgeProfiles(pods, findings);
  JudgeEnvironment(pods, findings);
  // Where pods ask for more or less, they have more or less.
  if (!JudgeDeviceCounts(pods, cluster, findings)) JudgeRails(pods, findings);
  // Rates and MTUs of two kinds of network cannot be compared.
  if (!JudgeLinkLayers(pods, cluster, findings)) JudgePorts(pods, findings);
  JudgeSilence(pods, JudgeHostPorts(pods, findings), findings);
}

}  // namespace railhead::op::verdict
