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
#include <vector>

#include "operator/verdict/reasons.h"

namespace railhead::op {

// Pages asked for, by what came of it.
struct PageCounts {
  uint64_t ok = 0;
  uint64_t unreachable = 0;
  uint64_t unreadable = 0;
};

// A kind of finding in a job. Where there are too many the first are shown, so warnings come first.
struct VerdictSeries {
  bool warning = false;  // else an info
  std::string space;
  std::string job;  // the owner's name
  std::string reason;
  // Where the reason is about a rail; else empty.
  std::string rail = {};
  std::string node = {};

  bool operator<(const VerdictSeries& other) const {
    return std::tie(other.warning, space, job, reason, rail, node) <
           std::tie(warning, other.space, other.job, other.reason, other.rail, other.node);
  }
};
using VerdictCounts = std::map<VerdictSeries, size_t>;  // how many pods

// At most so many of them. Where there are more, each namespace has an equal part, and the rest
// goes to the first.
VerdictCounts FairlyChosen(const VerdictCounts& counts, size_t most);

// Of the job of that namespace and name.
VerdictCounts CountPods(const std::string& space, const std::string& job,
                        const std::vector<verdict::Finding>& findings);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_COLLECTOR_VERDICT_COUNTS_H_
