// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/pod_facts.h"

#include <net/if.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "jobs/fields.h"
#include "jobs/job.h"
#include "kube/elements.h"
#include "operator/objects/names.h"
#include "operator/objects/rdma_containers.h"
#include "operator/verdict/container_facts.h"

namespace railhead::op::verdict {
namespace {

using kube::AnnotationOf;
using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::LabelOf;
using kube::StringAt;

constexpr absl::string_view kMetricsPort = "railhead.io/metrics-port";
constexpr absl::string_view kNetworkStatus = "k8s.v1.cni.cncf.io/network-status";

// Labels that distinguish the pods of successive templates during a rolling update (apps/v1:
// ControllerRevisionHashLabelKey, DefaultDeploymentUniqueLabelKey).
constexpr absl::string_view kRevisionLabels[] = {"controller-revision-hash", "pod-template-hash"};

// Limits of values that users control; far above normal use.
constexpr size_t kMostOfALabel = 63;  // bytes, as the API allows
constexpr size_t kMostValues = 4096;  // bytes of the variables' values of all containers
constexpr size_t kMostContainers = 64;
constexpr size_t kMostInterfaces = 64;
constexpr size_t kMostWords = 1024;  // bytes of the scheduler's message

bool IsTrue(const Json& object, absl::string_view name) {
  const Json* value = Find(object, name);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

// "NAME@GENERATION"
void ReadStamp(const std::string& stamp, PodTerms& terms) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(stamp, absl::MaxSplits('@', 1));
  int64_t generation = 0;
  if (parts.first.empty() || !absl::SimpleAtoi(parts.second, &generation)) return;
  terms.profile = std::string(parts.first);
  terms.generation = generation;
}

// Every runtime names a pod's own interface eth0 (cri-api, "default interface"). Additional
// interfaces are declared: by a meta plugin in the pod's network status, by a driver with a
// resource claim, and by others in their own annotations.
std::optional<std::set<std::string>> InterfacesOf(const Json& pod, const Json& spec) {
  if (IsTrue(spec, "hostNetwork")) return std::nullopt;
  const Json* claims = Find(spec, "resourceClaims");
  if (claims != nullptr && !claims->is_null() && !claims->empty()) return std::nullopt;
  if (const std::string status = AnnotationOf(pod, kNetworkStatus); !status.empty()) {
    const absl::StatusOr<Json> networks = kube::ParseJson(status);
    if (!networks.ok() || !networks->is_array()) return std::nullopt;
    std::set<std::string> names = {"lo"};
    for (const Json& network : *networks) {
      const std::string name = StringAt(network, {"interface"});
      // The name is missing or not valid for an interface, or there are too many.
      if (name.empty() || name.size() >= IFNAMSIZ || names.size() == kMostInterfaces) {
        return std::nullopt;
      }
      names.insert(name);
    }
    return names;
  }
  if (const Json* annotations = FindPath(pod, {"metadata", "annotations"});
      annotations != nullptr && annotations->is_object()) {
    for (const auto& [key, value] : annotations->items()) {
      if (absl::StrContains(key, "network")) return std::nullopt;
    }
  }
  return std::set<std::string>{"lo", "eth0"};
}

std::string GangOf(const Json& pod, bool has_owner) {
  if (std::string group = jobs::GroupOf(pod); !group.empty()) return group;
  // Ours may have the pods of several kinds of owners, and need not be a name.
  std::string gang = LabelOf(pod, gangs::kGangLabel);
  return has_owner || gang == "true" || gang == "false" ? "" : gang;
}

// Ranks that the pods' Jobs number: those of other kinds are in their variables.
void ReadRank(const Json& pod, PodFacts& facts, PodTerms& terms) {
  jobs::Rank rank = jobs::RankOf(pod);
  if (!rank.index) return;
  facts.rank = rank.rank ? rank.rank : rank.index;
  facts.world = rank.world;
  if (!rank.set_uid) return;
  terms.replicated_job = std::move(rank.job);
  terms.job_set_uid = *std::move(rank.set_uid);
}

// Returns when the last container with RDMA started: a helper beside them may have ended, or fail
// repeatedly, while the ranks run. If only init containers have RDMA, all others count.
absl::Time RunningSince(const Json& pod, const std::vector<ContainerFacts>& containers) {
  std::set<std::string> missing;
  for (const ContainerFacts& container : containers) {
    if (!container.init) missing.insert(container.name);
  }
  const bool all = missing.empty();
  absl::Time since = absl::InfinitePast();
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    if (all && absl::StartsWith(list, "init")) continue;
    for (const Json& status : kube::ElementsAt(pod, {"status", list})) {
      if (!all && missing.erase(StringAt(status, {"name"})) == 0) continue;
      absl::Time started;
      if (!absl::ParseTime(absl::RFC3339_full, StringAt(status, {"state", "running", "startedAt"}),
                           &started, nullptr)) {
        return absl::InfiniteFuture();
      }
      since = std::max(since, started);
    }
  }
  return missing.empty() && since != absl::InfinitePast() ? since : absl::InfiniteFuture();
}

void ReadStatus(const Json& pod, const std::vector<ContainerFacts>& containers, PodFacts& facts) {
  const std::string phase = StringAt(pod, {"status", "phase"});
  const Json* deletion = FindPath(pod, {"metadata", "deletionTimestamp"});
  facts.finished =
      phase == "Succeeded" || phase == "Failed" || (deletion != nullptr && !deletion->is_null());
  facts.address = StringAt(pod, {"status", "podIP"});
  const Json* scheduled = kube::FindCondition(pod, "PodScheduled");
  if (scheduled != nullptr && StringAt(*scheduled, {"status"}) == "False" &&
      StringAt(*scheduled, {"reason"}) == "Unschedulable") {
    facts.unschedulable = StringAt(*scheduled, {"message"}).substr(0, kMostWords);
  }
  if (phase == "Running") facts.running_since = RunningSince(pod, containers);
}

}  // namespace

std::optional<PodFacts> PodFactsOf(const Json& pod, const RdmaResources& rdma) {
  const Json* spec = Find(pod, "spec");
  if (spec == nullptr || !spec->is_object()) return std::nullopt;
  const absl::StatusOr<std::vector<std::string>> containers = FindRdmaContainers(*spec, rdma);
  if (!containers.ok() || containers->empty()) return std::nullopt;

  PodFacts facts;
  PodTerms terms;
  facts.space = StringAt(pod, {"metadata", "namespace"});
  facts.name = StringAt(pod, {"metadata", "name"});
  facts.uid = StringAt(pod, {"metadata", "uid"});
  terms.owner = jobs::ControllerOf(pod);
  if (terms.owner &&
      (terms.owner->kind.empty() || terms.owner->name.empty() || terms.owner->uid.empty())) {
    terms.owner.reset();
  }
  terms.gang = GangOf(pod, terms.owner.has_value());
  for (const absl::string_view label : kRevisionLabels) {
    if (!terms.revision.empty()) break;
    terms.revision = LabelOf(pod, label).substr(0, kMostOfALabel);
  }
  absl::ParseTime(absl::RFC3339_full, StringAt(pod, {"metadata", "creationTimestamp"}),
                  &facts.created, nullptr);
  facts.node = StringAt(*spec, {"nodeName"});
  facts.admitted = !AnnotationOf(pod, "railhead.io/injected").empty();
  ReadStamp(AnnotationOf(pod, "railhead.io/profile"), terms);
  const std::string kept = AnnotationOf(pod, "railhead.io/kept-environment");
  for (const absl::string_view name : absl::StrSplit(kept, ',', absl::SkipEmpty())) {
    const absl::Span<const absl::string_view> known = WatchedVariables();
    if (std::find(known.begin(), known.end(), name) != known.end()) terms.kept.emplace(name);
  }
  terms.not_done = ParseNotDone(AnnotationOf(pod, kNotDone));
  ReadRank(pod, facts, terms);
  facts.host_network = IsTrue(*spec, "hostNetwork");
  terms.interfaces = InterfacesOf(pod, *spec);
  facts.metrics_port = jobs::NumberIn(AnnotationOf(pod, kMetricsPort), 1, 65535).value_or(0);
  // As of admission before it wrote that.
  if (facts.metrics_port == 0 && AnnotationOf(pod, "prometheus.io/scrape") == "true" &&
      AnnotationOf(pod, "prometheus.io/port") == "9402") {
    facts.metrics_port = 9402;
  }
  size_t room = kMostValues;
  std::vector<ContainerFacts> kept_containers;
  for (const std::string& pointer : *containers) {
    if (kept_containers.size() == kMostContainers) break;
    const Json& container = spec->at(Json::json_pointer(pointer));
    ContainerFacts& one =
        kept_containers.emplace_back(ContainerFactsOf(container, pod, rdma, room));
    // A sidecar stays, as the containers do.
    one.init = absl::StartsWith(pointer, "/initContainers") &&
               StringAt(container, {"restartPolicy"}) != "Always";
    // Admission's RANK is the only difference between the containers of a job's pods. Without it
    // these have equal terms, which they share.
    if (facts.admitted && !terms.kept.contains("RANK")) one.environment.erase("RANK");
  }
  ReadStatus(pod, kept_containers, facts);
  terms.containers = SharedList(std::move(kept_containers));
  facts.terms = std::move(terms);
  return facts;
}

}  // namespace railhead::op::verdict
