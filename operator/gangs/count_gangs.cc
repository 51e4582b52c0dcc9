// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/count_gangs.h"

#include <algorithm>

namespace railhead::op::gangs {

GangCounts CountGangs(const std::vector<Decision>& decisions,
                      const std::set<std::string>& carried_out, const GangCounts& before,
                      absl::Time now) {
  GangCounts counts;
  counts.placed = before.placed;
  counts.replanned = before.replanned;
  for (const Decision& decision : decisions) {
    switch (decision.state) {
      case Decision::State::kIncomplete:
        ++counts.incomplete;
        break;
      case Decision::State::kWaiting:
        ++counts.waiting;
        counts.longest_wait = std::max(counts.longest_wait, now - decision.gang.created);
        break;
      case Decision::State::kTimedOut:
        ++counts.incomplete;
        break;
      case Decision::State::kPlaced:
        if (carried_out.contains(decision.gang.key)) {
          ++counts.placed;
        } else if (!decision.gang.begun()) {
          ++counts.waiting;
          counts.longest_wait = std::max(counts.longest_wait, now - decision.gang.created);
          break;
        }
        ++counts.running;
        break;
      case Decision::State::kRunning:
        if (!decision.gang.released.empty()) ++counts.running;
        break;
    }
  }
  return counts;
}

}  // namespace railhead::op::gangs
