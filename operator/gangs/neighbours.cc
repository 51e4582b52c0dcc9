// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/neighbours.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "operator/gangs/names.h"

namespace railhead::op::gangs {

void Neighbours::Add(size_t node, const PodValue& pod) {
  if (!pod->claims.empty()) claims_.emplace_back(node, pod);
  if (!pod->labels.empty()) labels_.emplace_back(node, pod);
}

void Neighbours::Remove(size_t node, const PodValue& pod) {
  for (Pods* pods : {&claims_, &labels_}) {
    const auto found = std::find(pods->begin(), pods->end(), std::make_pair(node, pod));
    if (found != pods->end()) pods->erase(found);
  }
}

void Neighbours::ExcludeLike(size_t node, const std::string& label, const std::string& why,
                             Exclusions& exclusions) const {
  if (label == kHostname) {
    exclusions.emplace(node, why);
    return;
  }
  const Labels& labels = tree_->nodes[node]->labels;
  const auto value = labels.find(label);
  if (value == labels.end()) return;
  for (size_t i = 0; i < tree_->nodes.size(); ++i) {
    const auto other = tree_->nodes[i]->labels.find(label);
    if (other != tree_->nodes[i]->labels.end() && other->second == value->second) {
      exclusions.emplace(i, why);
    }
  }
}

Exclusions Neighbours::For(const StoredPod& pod) const {
  Exclusions exclusions;
  for (const auto& [node, other] : claims_) {
    for (const HostPort& port : pod.claims.ports) {
      if (std::any_of(other->claims.ports.begin(), other->claims.ports.end(),
                      [&](const HostPort& taken) { return port.Collides(taken); })) {
        exclusions.emplace(node, absl::StrCat("host port ", port.port, " in use"));
      }
    }
    for (const KeepApart& apart : other->claims.apart) {
      if (!apart.IsAbout(pod.space, pod.labels)) continue;
      ExcludeLike(node, apart.topology_key, "spec.affinity.podAntiAffinity of a pod there",
                  exclusions);
    }
  }
  for (const KeepApart& apart : pod.claims.apart) {
    for (const auto& [node, other] : labels_) {
      if (!apart.IsAbout(other->space, other->labels)) continue;
      ExcludeLike(node, apart.topology_key, "spec.affinity.podAntiAffinity to a pod there",
                  exclusions);
    }
  }
  return exclusions;
}

}  // namespace railhead::op::gangs
