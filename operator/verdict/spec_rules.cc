// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "operator/verdict/rules.h"

namespace railhead::op::verdict {
namespace {

constexpr char kOwnPluginFile[] = "libnccl-net-railhead.so";

std::optional<std::string> ValueOf(const ContainerFacts& container, const std::string& name) {
  const auto found = container.environment.find(name);
  if (found == container.environment.end()) return std::nullopt;
  return found->second;
}

// Returns the value if the user set it; nullopt if a profile or the configuration did.
std::optional<std::string> OwnValueOf(const PodFacts& pod, const ContainerFacts& container,
                                      const std::string& name) {
  if (pod.admitted && pod.terms->kept.count(name) == 0) return std::nullopt;
  return ValueOf(container, name);
}

bool RunsOverRdma(const JudgedPod& judged) {
  const RuntimeReport* start = StartOf(judged);
  return start != nullptr &&
         std::any_of(start->ranks.begin(), start->ranks.end(), [](const RankReport& rank) {
           return rank.start.has_value() && rank.start->transport == "verbs";
         });
}

// Returns whether its ranks have met others, which needs existing interfaces.
bool HasMetOthers(const JudgedPod& judged) {
  const RuntimeReport* start = StartOf(judged);
  return start != nullptr &&
         std::any_of(start->ranks.begin(), start->ranks.end(), [start](const RankReport& rank) {
           return rank.start.has_value() &&
                  rank.start->world_size > static_cast<int>(start->ranks.size());
         });
}

void JudgeAdmission(const PodFacts& pod, const Cluster& cluster, Findings& findings) {
  // The webhook exists since the first installation; older pods could not pass it.
  const ClusterSettings& settings = cluster.settings();
  if (!pod.admitted && settings.tells_missed && pod.created > settings.admission_since) {
    findings.push_back(MakeFinding(Reason::kAdmissionMissed, pod.name, "", {}));
  }
  const ProfileFacts* profile = ProfileOf(pod, cluster);
  if (profile != nullptr && pod.terms->generation < profile->generation) {
    findings.push_back(MakeFinding(Reason::kProfileOutdated, pod.name, "",
                                   {pod.terms->profile, absl::StrCat(pod.terms->generation),
                                    absl::StrCat(profile->generation)}));
  }
}

// Reports the steps that admission noted as not done, except those that were not requested.
void JudgeNotDone(const PodFacts& pod, Findings& findings) {
  for (const NotDoneNote& note : pod.terms->not_done) {
    const NotDoneRow& row = op::RowOf(note.reason);
    if (row.level == NotDoneLevel::kQuiet) continue;
    PodFinding finding = MakeFinding(Reason::kNotDone, pod.name, "",
                                     {std::string(row.word), note.what(), note.fix()});
    finding.part = std::string(row.word);
    if (row.level == NotDoneLevel::kInfo) finding.severity = Severity::kWarn;
    findings.push_back(std::move(finding));
  }
}

void JudgeOverrides(const JudgedPod& judged, const ContainerFacts& container,
                    const Cluster& cluster, Findings& findings) {
  const PodFacts& pod = *judged.pod;
  const ProfileFacts* profile = ProfileOf(pod, cluster);
  const auto fallback = OwnValueOf(pod, container, "RAILHEAD_FALLBACK");
  if (profile != nullptr && profile->require_rdma == RequireRdma::kFail && fallback.has_value() &&
      *fallback != "fail") {
    findings.push_back(MakeFinding(Reason::kPolicyOverridden, pod.name, container.name,
                                   {*fallback, pod.terms->profile}));
  }
  const auto rank = OwnValueOf(pod, container, "RANK");
  if (rank.has_value() && pod.rank.has_value() && pod.world.value_or(0) > 1 &&
      *rank != absl::StrCat(*pod.rank)) {
    findings.push_back(MakeFinding(Reason::kRankOverridden, pod.name, container.name,
                                   {*rank, absl::StrCat(*pod.rank)}));
  }
  if (TcpIsMeant(pod, cluster)) return;
  const auto disabled = [&](const std::string& name, absl::string_view how) {
    const auto value = OwnValueOf(pod, container, name);
    if (!value.has_value() || !absl::EqualsIgnoreCase(*value, how)) return;
    findings.push_back(
        MakeFinding(Reason::kRdmaDisabled, pod.name, container.name, {name, *value}));
  };
  disabled("RAILHEAD_TRANSPORT", "tcp");
  // NCCL has no RDMA over iWARP; and where our runtime has it, NCCL's variables are not in use.
  if ((profile != nullptr && profile->fabric == Fabric::kIwarp) || RunsOverRdma(judged) ||
      ReportMayCome(judged)) {
    return;
  }
  disabled("NCCL_IB_DISABLE", "1");
  disabled("NCCL_NET", "Socket");
}

// Returns whether a list of names matches one of `known`. Format as in NCCL's user
// guide for NCCL_IB_HCA and NCCL_SOCKET_IFNAME: prefixes, or whole names after
// '=', each with an optional ":PORT". A list of exclusions, after '^', always
// matches.
bool AnyMatches(absl::string_view list, const std::set<std::string>& known) {
  if (absl::ConsumePrefix(&list, "^")) return true;
  const bool exact = absl::ConsumePrefix(&list, "=");
  for (absl::string_view name : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    name = name.substr(0, name.find(':'));
    for (const std::string& candidate : known) {
      if (exact ? candidate == name : absl::StartsWith(candidate, name)) return true;
    }
  }
  return false;
}

bool AllAreKnown(absl::string_view list, const std::set<std::string>& known) {
  const std::vector<std::string> names = absl::StrSplit(list, ',', absl::SkipEmpty());
  return std::all_of(names.begin(), names.end(),
                     [&known](const std::string& name) { return known.count(name) > 0; });
}

// Returns the pod's HCAs as its runtime reports them, else all of its node, a superset.
std::set<std::string> HcasOf(const JudgedPod& judged, const Cluster& cluster) {
  std::set<std::string> devices;
  if (const RuntimeReport* start = StartOf(judged); start != nullptr) {
    for (const RankReport& rank : start->ranks) {
      for (const GivenRail& rail : rank.given) devices.insert(rail.device);
    }
  }
  const NodeFacts* node = NodeOf(*judged.pod, cluster);
  if (!devices.empty() || node == nullptr) return devices;
  for (const fabric::SeenRail& rail : node->rails) devices.insert(rail.device);
  return devices;
}

// Includes interfaces that the node's agent may have moved into the pod (moveInterfaces), as the
// pod's status does not list them.
std::set<std::string> InterfacesOf(const PodFacts& pod, const Cluster& cluster) {
  std::set<std::string> names = *pod.terms->interfaces;
  const NodeFacts* node = NodeOf(pod, cluster);
  if (node == nullptr) return names;
  for (const fabric::SeenRail& rail : node->rails) names.insert(absl::StrCat("rail", rail.rail));
  return names;
}

void JudgeNames(const JudgedPod& judged, const ContainerFacts& container, const Cluster& cluster,
                Findings& findings) {
  const PodFacts& pod = *judged.pod;
  const std::set<std::string> hcas = HcasOf(judged, cluster);
  const auto hca = OwnValueOf(pod, container, "NCCL_IB_HCA");
  if (hca.has_value() && !hcas.empty() && !AnyMatches(*hca, hcas)) {
    findings.push_back(MakeFinding(Reason::kNcclHcaUnknown, pod.name, container.name,
                                   {*hca, absl::StrJoin(hcas, ", "), pod.node}));
  }
  // Additional interfaces exist and are declared before the containers run.
  if (!pod.terms->interfaces.has_value() || pod.running_since == absl::InfiniteFuture()) return;
  const std::set<std::string> known = InterfacesOf(pod, cluster);
  for (const char* name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "RAILHEAD_SOCKET_IFNAME"}) {
    const auto value = ValueOf(container, name);
    if (!value.has_value()) continue;
    if (absl::StartsWith(name, "RAILHEAD") && (HasMetOthers(judged) || ReportMayCome(judged))) {
      continue;
    }
    const bool fits =
        absl::StartsWith(name, "NCCL") ? AnyMatches(*value, known) : AllAreKnown(*value, known);
    if (fits) continue;
    findings.push_back(MakeFinding(Reason::kSocketInterfaceUnknown, pod.name, container.name,
                                   {name, *value, absl::StrJoin(*pod.terms->interfaces, ", ")}));
  }
}

void JudgeGpuDirect(const PodFacts& pod, const ContainerFacts& container, const Cluster& cluster,
                    Findings& findings) {
  const NodeFacts* node = NodeOf(pod, cluster);
  if (node == nullptr || node->gpu_direct != "none" || container.gpus == 0) return;
  const auto level = ValueOf(container, "NCCL_NET_GDR_LEVEL");
  const auto read = ValueOf(container, "NCCL_NET_GDR_READ");
  if (level.has_value() && *level != "LOC" && *level != "0") {
    findings.push_back(MakeFinding(Reason::kGpuDirectMissing, pod.name, container.name,
                                   {"NCCL_NET_GDR_LEVEL", *level, pod.node}));
  } else if (read == "1") {
    findings.push_back(MakeFinding(Reason::kGpuDirectMissing, pod.name, container.name,
                                   {"NCCL_NET_GDR_READ", *read, pod.node}));
  }
}

// Only where a device is a rail: a plugin that shares HCAs offers more of them than there are
// rails, and one that gives all of them at once fewer than GPUs.
void JudgeDeviceCount(const PodFacts& pod, const ContainerFacts& container, const Cluster& cluster,
                      Findings& findings) {
  const NodeFacts* node = NodeOf(pod, cluster);
  if (node == nullptr || container.init || container.gpus == 0) return;
  int64_t devices = 0;
  int64_t offered = 0;
  for (const auto& [name, count] : container.devices) {
    devices += count;
    const auto capacity = node->capacity.find(name);
    offered += capacity == node->capacity.end() ? 0 : capacity->second;
  }
  const auto rails = static_cast<int64_t>(node->rails.size());
  if (devices >= container.gpus || offered < container.gpus || offered > rails) return;
  findings.push_back(MakeFinding(
      Reason::kFewerDevicesThanGpus, pod.name, container.name,
      {absl::StrCat(devices), absl::StrCat(container.gpus), pod.node, absl::StrCat(rails)}));
}

// SHARP needs switches of InfiniBand, and a plugin with CollNet.
void JudgeSharp(const PodFacts& pod, const ContainerFacts& container, const Cluster& cluster,
                Findings& findings) {
  if (container.init || ValueOf(container, "NCCL_COLLNET_ENABLE") != "1") return;
  const auto add = [&](std::string why, std::string fix) {
    findings.push_back(MakeFinding(Reason::kSharpNotPossible, pod.name, container.name,
                                   {std::move(why), std::move(fix)}));
  };
  const NodeFacts* node = NodeOf(pod, cluster);
  if (node != nullptr && node->link_layer == "Ethernet") {
    add(absl::StrCat("the rails of node ", pod.node,
                     " are Ethernet, and SHARP is a feature of "
                     "InfiniBand's switches"),
        "set NCCL_COLLNET_ENABLE=0, or select nodes with a nodeSelector for "
        "railhead.io/link-layer: InfiniBand");
    return;
  }
  const auto plugin = ValueOf(container, "NCCL_NET_PLUGIN");
  if (plugin.has_value() && absl::EndsWith(*plugin, kOwnPluginFile)) {
    add("Railhead's NCCL plugin has no CollNet",
        "set NCCL_COLLNET_ENABLE=0, or use an image with NVIDIA's SHARP plugin and name it in "
        "spec.nccl.collnetPlugin of the RailProfile, without spec.inject.ncclPlugin");
  }
}

}  // namespace

void JudgeSpec(const JudgedPod& judged, const Cluster& cluster, Findings& findings) {
  JudgeAdmission(*judged.pod, cluster, findings);
  JudgeNotDone(*judged.pod, findings);
  for (const ContainerFacts& container : judged.pod->terms->containers) {
    JudgeOverrides(judged, container, cluster, findings);
    JudgeNames(judged, container, cluster, findings);
    JudgeSharp(*judged.pod, container, cluster, findings);
    if (!TcpIsMeant(*judged.pod, cluster)) {
      JudgeGpuDirect(*judged.pod, container, cluster, findings);
      JudgeDeviceCount(*judged.pod, container, cluster, findings);
    }
  }
}

}  // namespace railhead::op::verdict
