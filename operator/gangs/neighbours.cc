// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/neighbours.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

template <typename Key, typename Nodes>
void Drop(const Key& key, size_t node, std::map<Key, Nodes>& all) {
  const auto found = all.find(key);
  if (found == all.end()) return;
  const auto at = found->second.find(node);
  if (at == found->second.end() || --at->second > 0) return;
  found->second.erase(at);
  if (found->second.empty()) all.erase(found);
}

}  // namespace

void Neighbours::Add(size_t node, const PodValue& pod) {
  for (const HostPort& port : pod->claims->ports) ++ports_[port][node];
  for (const KeepApart& apart : pod->claims->apart) ++apart_[apart][node];
  if (!pod->labels.empty()) labels_.emplace(node, pod);
}

void Neighbours::Remove(size_t node, const PodValue& pod) {
  for (const HostPort& port : pod->claims->ports) Drop(port, node, ports_);
  for (const KeepApart& apart : pod->claims->apart) Drop(apart, node, apart_);
  if (pod->labels.empty()) return;
  // There may be another value of the same pod.
  const auto [first, end] = labels_.equal_range({node, pod});
  const auto found = std::find_if(first, end, [&](const auto& at) { return at.second == pod; });
  if (found != end) labels_.erase(found);
}

void Neighbours::ExcludeLike(const std::set<size_t>& nodes, const std::string& label,
                             const std::string& why, NodesInTheWay& in_the_way) const {
  if (nodes.empty()) return;
  if (label == kHostname) {
    for (const size_t node : nodes) in_the_way.emplace(node, why);
    return;
  }
  std::set<std::string> values;
  for (const size_t node : nodes) {
    const std::string* value = tree_->nodes[node]->labels.Find(label);
    if (value != nullptr) values.insert(*value);
  }
  for (size_t i = 0; i < tree_->nodes.size() && !values.empty(); ++i) {
    const std::string* value = tree_->nodes[i]->labels.Find(label);
    if (value != nullptr && values.contains(*value)) in_the_way.emplace(i, why);
  }
}

NodesInTheWay Neighbours::For(const StoredPod& pod) const {
  NodesInTheWay in_the_way;
  for (const HostPort& port : pod.claims->ports) {
    // Ports of the same number and protocol are adjacent.
    for (auto taken = ports_.lower_bound({port.port, port.protocol, ""});
         taken != ports_.end() && taken->first.port == port.port &&
         taken->first.protocol == port.protocol;
         ++taken) {
      if (!port.Collides(taken->first)) continue;
      for (const auto& [node, pods] : taken->second) {
        in_the_way.emplace(node, absl::StrCat("host port ", port.port, " in use"));
      }
    }
  }
  for (const auto& [apart, at] : apart_) {
    if (!apart.IsAbout(pod.space, pod.labels)) continue;
    std::set<size_t> nodes;
    for (const auto& [node, pods] : at) nodes.insert(node);
    ExcludeLike(nodes, apart.topology_key, "spec.affinity.podAntiAffinity of a pod there",
                in_the_way);
  }
  for (const KeepApart& apart : pod.claims->apart) {
    std::set<size_t> nodes;
    for (const auto& [node, other] : labels_) {
      if (apart.IsAbout(other->space, other->labels)) nodes.insert(node);
    }
    ExcludeLike(nodes, apart.topology_key, "spec.affinity.podAntiAffinity to a pod there",
                in_the_way);
  }
  return in_the_way;
}

}  // namespace railhead::op::gangs
