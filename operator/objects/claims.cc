// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/claims.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "kube/elements.h"
#include "operator/objects/names.h"
#include "operator/objects/pod_rules.h"

namespace railhead::op::gangs {
namespace {

using kube::Find;
using kube::Json;
using kube::StringAt;

constexpr char kAnyAddress[] = "0.0.0.0";

void AddPorts(const Json& pod, const char* list, std::vector<HostPort>& ports) {
  for (const Json& container : kube::ElementsAt(pod, {"spec", list})) {
    // Other init containers have ended when the pod runs; the scheduler counts none of theirs.
    if (list[0] == 'i' && StringAt(container, {"restartPolicy"}) != "Always") continue;
    for (const Json& port : kube::ElementsAt(container, {"ports"})) {
      const Json* host = Find(port, "hostPort");
      if (host == nullptr || !host->is_number_integer() || *host <= 0 || *host > 65535) continue;
      HostPort read = {host->get<int>(), StringAt(port, {"protocol"}), StringAt(port, {"hostIP"})};
      if (read.protocol.empty()) read.protocol = "TCP";
      if (read.address == kAnyAddress) read.address.clear();
      ports.push_back(std::move(read));
    }
  }
}

void AddTerm(const Json& pod, const Json& term, std::vector<KeepApart>& apart) {
  const Json* selector = Find(term, "labelSelector");
  // Without one it is about no pods.
  if (selector == nullptr || !selector->is_object()) return;
  absl::StatusOr<LabelSelector> read = ParseLabelSelector(*selector, "labelSelector");
  KeepApart keep;
  keep.topology_key = StringAt(term, {"topologyKey"});
  if (!read.ok() || keep.topology_key.empty()) return;
  keep.selector = *std::move(read);
  if (const Json* by_labels = Find(term, "namespaceSelector");
      by_labels == nullptr || by_labels->is_null()) {
    for (const Json& space : kube::ElementsAt(term, {"namespaces"})) {
      if (space.is_string()) keep.spaces.push_back(space.get<std::string>());
    }
    if (keep.spaces.empty()) keep.spaces.push_back(StringAt(pod, {"metadata", "namespace"}));
  }
  apart.push_back(std::move(keep));
}

}  // namespace

bool HostPort::Collides(const HostPort& other) const {
  return port == other.port && protocol == other.protocol &&
         (address == other.address || address.empty() || other.address.empty());
}

bool KeepApart::operator<(const KeepApart& other) const {
  const auto before = [](const LabelSelector::Expression& a, const LabelSelector::Expression& b) {
    return std::tie(a.key, a.how, a.values) < std::tie(b.key, b.how, b.values);
  };
  const auto rest = [](const KeepApart& keep) {
    return std::tie(keep.topology_key, keep.spaces, keep.selector.labels);
  };
  if (rest(*this) != rest(other)) return rest(*this) < rest(other);
  return std::lexicographical_compare(selector.expressions.begin(), selector.expressions.end(),
                                      other.selector.expressions.begin(),
                                      other.selector.expressions.end(), before);
}

bool KeepApart::IsAbout(const std::string& space, const LabelSet& labels) const {
  const bool here =
      spaces.empty() || std::find(spaces.begin(), spaces.end(), space) != spaces.end();
  return here && Matches(selector, labels);
}

Claims WidestClaims() {
  KeepApart all;
  all.topology_key = kHostname;
  return {.ports = {}, .apart = {std::move(all)}};
}

Claims ReadClaims(const Json& pod) {
  Claims claims;
  AddPorts(pod, "containers", claims.ports);
  AddPorts(pod, "initContainers", claims.ports);
  for (const Json& term : RequiredTerms(pod, "podAntiAffinity")) AddTerm(pod, term, claims.apart);
  return claims;
}

}  // namespace railhead::op::gangs
