// SPDX-License-Identifier: Apache-2.0
//
// Computes the counts of gangs for Prometheus after each round of GangController. Pure.
#ifndef RAILHEAD_OPERATOR_GANGS_COUNT_GANGS_H_
#define RAILHEAD_OPERATOR_GANGS_COUNT_GANGS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/gangs/gang_counts.h"
#include "operator/gangs/planner.h"

namespace railhead::op::gangs {

// Returns current counts from the decisions, plus the totals of `before`. `carried_out`: keys of
// gangs whose actions all succeeded.
GangCounts CountGangs(const std::vector<Decision>& decisions,
                      const std::set<std::string>& carried_out, const GangCounts& before,
                      absl::Time now);

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_COUNT_GANGS_H_
