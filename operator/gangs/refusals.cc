// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/refusals.h"

namespace railhead::op::gangs {

std::vector<PodValue> Refusals::Due(const std::vector<PodValue>& pods, absl::Time now) {
  std::map<std::string, absl::Time> since;
  std::vector<PodValue> due;
  for (const PodValue& pod : pods) {
    if (!pod->member || !pod->member->released || !pod->member->unschedulable) continue;
    if (!pod->node.empty() || pod->leaving) continue;
    const auto seen = since_.find(pod->uid);
    const absl::Time first = seen == since_.end() ? now : seen->second;
    since[pod->uid] = first;
    if (now - first >= kPatience) due.push_back(pod);
  }
  since_ = std::move(since);
  return due;
}

void Refusals::Avoid(const std::string& gang_key, const std::string& node, absl::Time now) {
  until_[{gang_key, node}] = now + kAvoid;
}

RefusedNodes Refusals::Nodes(absl::Time now) {
  std::erase_if(until_, [now](const auto& entry) { return entry.second <= now; });
  RefusedNodes nodes;
  for (const auto& [place, until] : until_) nodes[place.first].insert(place.second);
  return nodes;
}

}  // namespace railhead::op::gangs
