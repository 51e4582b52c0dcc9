// SPDX-License-Identifier: Apache-2.0
#include "operator/gangs/count_gangs.h"

namespace railhead::op::gangs {

GangCounts CountGangs(const std::vector<Decision>& decisions,
                      const std::set<std::string>& carried_out, const GangCounts& before,
                      absl::Time now) {
  GangCounts counts;
  counts.placed = before.placed;
  counts.replanned = before.replanned;
  const auto waits = [&counts, now](const Gang& gang) {
    ++counts.waiting;
    if (!counts.longest_name.empty() && now - gang.created <= counts.longest_wait) return;
    counts.longest_wait = now - gang.created;
    counts.longest_space = gang.space;
    counts.longest_name = gang.name;
  };
  for (const Decision& decision : decisions) {
    switch (decision.state) {
      case Decision::State::kIncomplete:
        ++counts.incomplete;
        break;
      case Decision::State::kWaiting:
        waits(decision.gang);
        break;
      case Decision::State::kTimedOut:
        ++counts.incomplete;
        break;
      case Decision::State::kPlaced:
        if (carried_out.contains(decision.gang.key)) {
          ++counts.placed;
        } else if (!decision.gang.begun()) {
          waits(decision.gang);
          break;
        }
        ++counts.running;
        break;
      case Decision::State::kRunning:
        // Pods that still wait for kube-scheduler do not run.
        if (!decision.gang.released.empty() && !WaitsInScheduler(decision.gang)) ++counts.running;
        break;
    }
  }
  return counts;
}

}  // namespace railhead::op::gangs
