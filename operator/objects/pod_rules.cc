// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/pod_rules.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kube/elements.h"
#include "operator/objects/label_selector.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using kube::Find;
using kube::Json;
using kube::StringAt;

// Returns whether an anti-affinity only keeps the pods of this one's own gang on separate hosts. An
// unknown field may mean more.
bool KeepsItsLikeAway(const Json& pod, const Json& term) {
  if (!term.is_object() || term.size() != 2 || StringAt(term, {"topologyKey"}) != kHostname) {
    return false;
  }
  const Json* selector = Find(term, "labelSelector");
  if (selector == nullptr || !selector->is_object() || selector->empty()) return false;
  const absl::StatusOr<LabelSelector> read = ParseLabelSelector(*selector, "labelSelector");
  return read.ok() && read->Matches(LabelsOf(pod));
}

bool HasHostPorts(const Json& pod) {
  for (const Json& container : kube::ElementsAt(pod, {"spec", "containers"})) {
    for (const Json& port : kube::ElementsAt(container, {"ports"})) {
      const Json* host = Find(port, "hostPort");
      if (host != nullptr && host->is_number_integer() && *host != 0) return true;
    }
  }
  return false;
}

}  // namespace

const Json::array_t& RequiredTerms(const Json& pod, const char* kind) {
  return kube::ElementsAt(
      pod, {"spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"});
}

bool OneOnANode(const Json& pod) {
  if (HasHostPorts(pod)) return true;
  const auto& terms = RequiredTerms(pod, "podAntiAffinity");
  return std::any_of(terms.begin(), terms.end(),
                     [&](const Json& term) { return KeepsItsLikeAway(pod, term); });
}

std::string RuleAboutPods(const Json& pod) {
  if (!RequiredTerms(pod, "podAffinity").empty()) return "spec.affinity.podAffinity";
  const auto& terms = RequiredTerms(pod, "podAntiAffinity");
  if (!std::all_of(terms.begin(), terms.end(),
                   [&](const Json& term) { return KeepsItsLikeAway(pod, term); })) {
    return "spec.affinity.podAntiAffinity";
  }
  const auto& spread = kube::ElementsAt(pod, {"spec", "topologySpreadConstraints"});
  const bool hard = std::any_of(spread.begin(), spread.end(), [](const Json& constraint) {
    return StringAt(constraint, {"whenUnsatisfiable"}) != "ScheduleAnyway";
  });
  return hard ? "spec.topologySpreadConstraints" : "";
}

std::string DnsNameOf(const Json& pod) {
  const std::string host = StringAt(pod, {"spec", "hostname"});
  const std::string subdomain = StringAt(pod, {"spec", "subdomain"});
  return host.empty() || subdomain.empty() ? "" : absl::StrCat(host, ".", subdomain);
}

}  // namespace railhead::op::gangs
