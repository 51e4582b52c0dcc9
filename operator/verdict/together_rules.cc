// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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

// Returns the pods whose value is not the most common one. In a tie, the value of the first pod
// counts as usual. Pods without a value are ignored.
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

std::string StampOf(const PodFacts& pod) {
  return pod.terms->profile.empty() ? "none"
                                    : absl::StrCat(pod.terms->profile, "@", pod.terms->generation);
}

// Compares names only: kProfileOutdated and JudgeEnvironment cover different generations.
void JudgeProfiles(const Pods& pods, Findings& findings) {
  const auto name = [](const JudgedPod& judged) -> std::optional<std::string> {
    const PodFacts& pod = *judged.pod;
    if (!pod.admitted) return std::nullopt;
    return pod.terms->profile;
  };
  for (const Odd& odd : OddOnes(pods, name)) {
    findings.push_back(
        MakeFinding(Reason::kProfilesDiffer, odd.pod->pod->name, "",
                    {StampOf(*odd.pod->pod), odd.other->pod->name, StampOf(*odd.other->pod)}));
  }
}

// Compares variables in which ranks must agree, or they hang or drop each other's packets.
void JudgeEnvironment(const Pods& pods, Findings& findings) {
  for (const char* name : {"NCCL_ALGO", "NCCL_IB_DISABLE", "NCCL_IB_SL", "NCCL_IB_TC", "NCCL_NET",
                           "NCCL_PROTO", "RAILHEAD_ALGO", "RAILHEAD_IB_SL", "RAILHEAD_IB_TC"}) {
    const auto value = [name](const JudgedPod& judged) -> std::optional<std::string> {
      for (const ContainerFacts& container : judged.pod->terms->containers) {
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
const RankReport* RdmaRankIn(const RuntimeReport* report) {
  if (report == nullptr) return nullptr;
  for (const RankReport& rank : report->ranks) {
    if (rank.start.has_value() && rank.start->world_size > 1 && rank.start->transport != "shm" &&
        rank.start->fallback != "allow" && !rank.given.empty()) {
      return &rank;
    }
  }
  return nullptr;
}

const RankReport* RdmaRank(const JudgedPod& judged) { return RdmaRankIn(judged.report.get()); }

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
  if (const RankReport* rank = RdmaRankIn(StartOf(judged)); rank != nullptr) {
    for (const GivenRail& rail : rank->given) {
      if (!rail.link_layer.empty()) layers.insert(rail.link_layer);
    }
    return layers.size() == 1 ? std::optional<std::string>(*layers.begin()) : std::nullopt;
  }
  const NodeFacts* node = NodeOf(*judged.pod, cluster);
  if (node == nullptr || judged.heard || ReportMayCome(judged) ||
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

// Compares MTU and rate of each rail. Reports one rail per pod and reason.
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

// Finds pods that have never reported, if others report and expect more ranks than are known.
// `explained`: pods whose missing report has a known cause.
void JudgeSilence(const Pods& pods, const std::set<const JudgedPod*>& explained,
                  Findings& findings) {
  std::set<std::pair<std::string, int>> seen;
  std::map<std::string, int> worlds;
  int reporting = 0;
  for (const JudgedPod* judged : pods) {
    // Includes ranks whose runtime has ended: their pods have reported.
    if (judged->learned != nullptr) {
      for (const RankReport& rank : judged->learned->ranks) seen.emplace(rank.job, rank.rank);
    }
    if (judged->report == nullptr || judged->report->ranks.empty()) continue;
    ++reporting;
    for (const RankReport& rank : judged->report->ranks) {
      seen.emplace(rank.job, rank.rank);
      if (rank.start.has_value()) worlds[rank.job] = rank.start->world_size;
    }
  }
  int64_t ranks = 0;
  for (const auto& [job, size] : worlds) ranks += size;
  const auto met = std::count_if(seen.begin(), seen.end(), [&worlds](const auto& rank) {
    return worlds.contains(rank.first);
  });
  if (reporting == 0 || ranks <= met) return;
  for (const JudgedPod* judged : pods) {
    const PodFacts& pod = *judged->pod;
    if (judged->report != nullptr || judged->heard || !judged->from_start ||
        judged->silence < kSilence || explained.contains(judged)) {
      continue;
    }
    findings.push_back(MakeFinding(Reason::kRankSilent, pod.name, OnlyContainer(pod),
                                   {absl::StrCat(pod.metrics_port), absl::StrCat(reporting)}));
  }
}

// Finds hostNetwork pods of a node that share a metrics port: only one can be scraped, the one that
// has reported. Others may run without Railhead's library. Returns pods that cannot be scraped.
std::set<const JudgedPod*> JudgeHostPorts(const Pods& pods, Findings& findings) {
  using Port = std::pair<std::string, int>;  // by node
  const auto port_of = [](const JudgedPod& judged) -> std::optional<Port> {
    const PodFacts& pod = *judged.pod;
    if (!pod.host_network || pod.node.empty() || pod.metrics_port == 0) return std::nullopt;
    return Port(pod.node, pod.metrics_port);
  };
  std::map<Port, const JudgedPod*> taken;
  for (const JudgedPod* judged : pods) {
    if (const auto port = port_of(*judged); port && judged->heard) taken.emplace(*port, judged);
  }
  std::set<const JudgedPod*> unheard;
  for (const JudgedPod* judged : pods) {
    const auto port = port_of(*judged);
    if (!port || judged->heard || judged->pod->running_since == absl::InfiniteFuture()) continue;
    const auto by = taken.find(*port);
    if (by == taken.end()) continue;
    unheard.insert(judged);
    const PodFacts& pod = *judged->pod;
    findings.push_back(
        MakeFinding(Reason::kMetricsPortShared, pod.name, OnlyContainer(pod),
                    {pod.node, absl::StrCat(pod.metrics_port), by->second->pod->name}));
  }
  return unheard;
}

// Compares settings and rails, which must be equal in pods of one cohort.
void JudgeAlike(const Pods& pods, const Cluster& cluster, Findings& findings) {
  JudgeEnvironment(pods, findings);
  // Different numbers of devices explain different rails.
  if (!JudgeDeviceCounts(pods, cluster, findings)) JudgeRails(pods, findings);
  // Rates and MTUs of two kinds of network cannot be compared.
  if (!JudgeLinkLayers(pods, cluster, findings)) JudgePorts(pods, findings);
}

// Returns the job name that the ranks give if the job has ranks in other pods, else "".
std::string ProgramOf(const JudgedPod& judged) {
  if (judged.report == nullptr) return "";
  const std::vector<RankReport>& ranks = judged.report->ranks;
  for (const RankReport& rank : ranks) {
    if (rank.start.has_value() && rank.start->world_size > static_cast<int>(ranks.size())) {
      return rank.job;
    }
  }
  return "";
}

}  // namespace

bool AreAllThere(const Pods& pods) {
  std::set<int> ranks;
  int world = 0;
  for (const JudgedPod* judged : pods) {
    if (judged->pod->rank.has_value()) ranks.insert(*judged->pod->rank);
    world = std::max(world, judged->pod->world.value_or(0));
  }
  return ranks.empty() || static_cast<int>(ranks.size()) >= world;
}

void JudgeTogether(const Pods& pods, const Cluster& cluster, bool one_program, Findings& findings) {
  // Pods of two templates differ during a rolling update. If pods are replaced one by one, those of
  // two states of a profile differ, too.
  using Cohort = std::tuple<std::string, std::string, std::string, int64_t>;
  std::map<Cohort, Pods> cohorts;
  for (const JudgedPod* judged : pods) {
    const PodFacts& pod = *judged->pod;
    if (one_program) {
      cohorts[{"", pod.terms->revision, "", 0}].push_back(judged);
    } else if (const std::string program = ProgramOf(*judged); !program.empty()) {
      cohorts[{program, pod.terms->revision, pod.terms->profile, pod.terms->generation}].push_back(
          judged);
    }
  }
  for (const auto& [cohort, alike] : cohorts) {
    if (one_program) JudgeProfiles(alike, findings);
    JudgeAlike(alike, cluster, findings);
  }
  JudgeSilence(pods, JudgeHostPorts(pods, findings), findings);
}

}  // namespace railhead::op::verdict
