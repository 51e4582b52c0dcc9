// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/native_ranks.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <string>

#include "fabric/natural_order.h"

namespace railhead::op::gangs {
namespace {

// Those that nobody has, and that no pod had which has succeeded, before those that one had.
std::vector<int> FreeRanks(const Gang& gang) {
  std::set<int> taken;
  for (const Released& there : gang.released) {
    if (there.rank) taken.insert(*there.rank);
  }
  std::vector<int> free;
  std::vector<int> ended;
  for (int rank = 0; rank < gang.size; ++rank) {
    if (taken.contains(rank)) continue;
    (gang.ended_ranks.contains(rank) ? ended : free).push_back(rank);
  }
  free.insert(free.end(), ended.begin(), ended.end());
  return free;
}

}  // namespace

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
