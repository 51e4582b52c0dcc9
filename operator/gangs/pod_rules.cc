// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/pod_rules.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "operator/gangs/names.h"
#include "operator/label_selector.h"

namespace railhead::op::gangs {
namespace {

using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::StringAt;

// Whether an anti-affinity means the pods of this one's own gang, and each host for itself. A field
// that is not known here may mean more.
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
  const Json* containers = FindPath(pod, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return false;
  for (const Json& container : *containers) {
    const Json* ports = Find(container, "ports");
    if (ports == nullptr || !ports->is_array()) continue;
    for (const Json& port : *ports) {
      const Json* host = Find(port, "hostPort");
      if (host != nullptr && host->is_number_integer() && *host != 0) return true;
    }
  }
  return false;
}

}  // namespace

const Json* RequiredTerms(const Json& pod, const char* kind) {
  const Json* terms =
      FindPath(pod, {"spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"});
  return terms != nullptr && terms->is_array() && !terms->empty() ? terms : nullptr;
}

bool OneOnANode(const Json& pod) {
  if (HasHostPorts(pod)) return true;
  const Json* terms = RequiredTerms(pod, "podAntiAffinity");
  return terms != nullptr && std::any_of(terms->begin(), terms->end(), [&](const Json& term) {
           return KeepsItsLikeAway(pod, term);
         });
}

std::string RuleAboutPods(const Json& pod) {
  if (RequiredTerms(pod, "podAffinity") != nullptr) return "spec.affinity.podAffinity";
  if (const Json* terms = RequiredTerms(pod, "podAntiAffinity");
      terms != nullptr && !std::all_of(terms->begin(), terms->end(), [&](const Json& term) {
        return KeepsItsLikeAway(pod, term);
      })) {
    return "spec.affinity.podAntiAffinity";
  }
  const Json* spread = FindPath(pod, {"spec", "topologySpreadConstraints"});
  if (spread == nullptr || !spread->is_array()) return "";
  const bool hard = std::any_of(spread->begin(), spread->end(), [](const Json& constraint) {
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
