// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/native_ranks.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

#include "fabric/natural_order.h"

namespace railhead::op::gangs {

std::vector<Assignment> RanksByPlace(const Gang& gang, const ClusterRoom& room) {
  int there = gang.succeeded;
  std::vector<Assignment> ranked;
  std::string master;
  for (const Released& released : gang.released) {
    const StoredPod& pod = *released.pod;
    if (pod.node.empty()) continue;
    ++there;
    if (released.rank == 0) master = pod.member->dns_name;
    if (!pod.member->wants_rank) continue;
    Assignment& assignment = ranked.emplace_back();
    assignment.pod = released.pod;
    assignment.node = pod.node;
  }
  if (ranked.empty() || there < gang.size) return {};
  const auto place = [&room](const Assignment& assignment) {
    return room.IndexOf(assignment.node).value_or(std::numeric_limits<size_t>::max());
  };
  std::sort(ranked.begin(), ranked.end(), [&](const Assignment& a, const Assignment& b) {
    if (const size_t first = place(a), second = place(b); first != second) return first < second;
    return fabric::NaturalLess(a.pod->name, b.pod->name);
  });
  const std::vector<int> free = FreeRanks(gang);
  // More pods than ranks: the others wait for one.
  ranked.resize(std::min(ranked.size(), free.size()));
  for (size_t i = 0; i < ranked.size(); ++i) {
    ranked[i].rank = free[i];
    if (free[i] == 0) master = ranked[i].pod->member->dns_name;
  }
  for (Assignment& assignment : ranked) assignment.master = master;
  return ranked;
}

}  // namespace railhead::op::gangs
