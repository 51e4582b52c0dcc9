// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/reservation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace railhead::op::gangs {

std::vector<size_t> NodesToKeepFree(const std::vector<NodeOutlook>& nodes,
                                    const std::vector<int>& domain_of_node, int pods) {
  struct Domain {
    int64_t now = 0;
    int64_t at_best = 0;
    std::vector<size_t> nodes;
  };
  std::map<int, Domain> domains;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].at_best <= 0) continue;
    Domain& domain = domains[domain_of_node[i]];
    domain.now += nodes[i].now;
    domain.at_best += nodes[i].at_best;
    domain.nodes.push_back(i);
  }
  Domain* best = nullptr;
  for (auto& [index, domain] : domains) {
    if (domain.at_best >= pods && (best == nullptr || domain.now > best->now)) best = &domain;
  }
  if (best == nullptr) return {};
  std::stable_sort(best->nodes.begin(), best->nodes.end(),
                   [&](size_t a, size_t b) { return nodes[a].now > nodes[b].now; });
  int64_t room = 0;
  size_t count = 0;
  while (count < best->nodes.size() && (room < pods || nodes[best->nodes[count]].now > 0)) {
    room += nodes[best->nodes[count++]].at_best;
  }
  best->nodes.resize(count);
  std::sort(best->nodes.begin(), best->nodes.end());
  return std::move(best->nodes);
}

}  // namespace railhead::op::gangs
