// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/rail_watch.h"

#include <algorithm>

#include "operator/verdict/judge.h"

namespace railhead::op {

using fabric::SeenRail;
using verdict::kPortPatience;

void RailWatch::Note(const std::string& node, const verdict::NodeFacts* before,
                     const verdict::NodeFacts* after, absl::Time now) {
  std::set<std::string> in_trouble;
  if (after != nullptr) {
    for (const SeenRail& rail : after->rails) {
      if (!rail.usable) in_trouble.insert(rail.device);
    }
  }
  std::erase_if(lost_, [&](const auto& entry) {
    return entry.first.first == node && !in_trouble.contains(entry.first.second);
  });
  if (before == nullptr) return;
  for (const SeenRail& rail : before->rails) {
    if (rail.usable && in_trouble.contains(rail.device)) lost_[{node, rail.device}] = now;
  }
}

std::set<std::pair<std::string, std::string>> RailWatch::JustLost(absl::Time now) {
  std::erase_if(lost_, [now](const auto& entry) { return now - entry.second >= kPortPatience; });
  std::set<std::pair<std::string, std::string>> just_lost;
  for (const auto& [rail, since] : lost_) just_lost.insert(rail);
  return just_lost;
}

absl::Duration RailWatch::UntilLost(const std::string& node, absl::Time now) const {
  absl::Duration until = absl::InfiniteDuration();
  for (auto at = lost_.lower_bound({node, ""}); at != lost_.end() && at->first.first == node;
       ++at) {
    until = std::min(until, std::max(at->second + kPortPatience - now, absl::ZeroDuration()));
  }
  return until;
}

}  // namespace railhead::op
