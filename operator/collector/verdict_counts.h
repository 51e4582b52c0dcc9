// SPDX-License-Identifier: Apache-2.0
//
// The collector's counts for Prometheus. Values only.
#ifndef RAILHEAD_OPERATOR_COLLECTOR_VERDICT_COUNTS_H_
#define RAILHEAD_OPERATOR_COLLECTOR_VERDICT_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "operator/verdict/reasons.h"

namespace railhead::op {

// Scrapes by result.
struct PageCounts {
  uint64_t ok = 0;
  uint64_t unreachable = 0;
  uint64_t unreadable = 0;
};

// A series: one kind of finding in a job. Sorted with warnings first, because only the first series
// are exported.
struct VerdictSeries {
  bool warning = false;  // else an info
  std::string space;
  std::string job;  // name of the owner
  std::string reason;
  // Set if the reason concerns a rail; else empty.
  std::string rail = {};
  std::string node = {};

  bool operator<(const VerdictSeries& other) const {
    return std::tie(other.warning, space, job, reason, rail, node) <
           std::tie(warning, other.space, other.job, other.reason, other.rail, other.node);
  }
};
using VerdictCounts = std::map<VerdictSeries, size_t>;  // number of pods

// Returns at most `most` series. If there are more, each namespace gets an equal part, and the
// first ones get the rest.
VerdictCounts FairlyChosen(const VerdictCounts& counts, size_t most);

// Counts pods by series, for the job of that namespace and name.
VerdictCounts CountPods(const std::string& space, const std::string& job,
                        const std::vector<verdict::PodFinding>& findings);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_VERDICT_COUNTS_H_
