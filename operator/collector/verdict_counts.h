// SPDX-License-Identifier: Apache-2.0
//
// What the collector has to tell Prometheus. Values only.
#ifndef RAILHEAD_OPERATOR_COLLECTOR_VERDICT_COUNTS_H_
#define RAILHEAD_OPERATOR_COLLECTOR_VERDICT_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace railhead::op {

// Pages asked for, by what came of it.
struct PageCounts {
  uint64_t ok = 0;
  uint64_t unreachable = 0;
  uint64_t unreadable = 0;
};

// A kind of finding in a job.
struct VerdictSeries {
  std::string space;
  std::string job;  // the owner's name
  std::string reason;
  std::string severity;  // "warning" or "info"

  bool operator<(const VerdictSeries& other) const {
    return std::tie(space, job, reason, severity) <
           std::tie(other.space, other.job, other.reason, other.severity);
  }
};
using VerdictCounts = std::map<VerdictSeries, size_t>;  // how many pods

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_VERDICT_COUNTS_H_
