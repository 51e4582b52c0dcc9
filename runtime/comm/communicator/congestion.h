// SPDX-License-Identifier: Apache-2.0
//
// Congestion detector: produces warnings when congestion counters of the job's rails increase.
// Pure. Used by HangReporter.
//
// The counters belong to the ports (fabric/port_counters.h) and include traffic of other jobs; the
// warnings mention that.
#ifndef RAILHEAD_RUNTIME_COMM_COMMUNICATOR_CONGESTION_H_
#define RAILHEAD_RUNTIME_COMM_COMMUNICATOR_CONGESTION_H_

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/metrics/snapshot.h"

namespace railhead::comm {

// Not thread-safe.
class Congestion {
 public:
  // Recommended interval between calls of Look. Some adapters query their firmware for every
  // counter.
  static constexpr absl::Duration kPace = absl::Seconds(5);
  // Minimum time between two warnings about a rail.
  static constexpr absl::Duration kQuiet = absl::Minutes(10);

  // Compares the counters with those of the last call. Returns a warning for each rail whose
  // counters have increased noticeably: counter, increase, interval, and the fix. A counter that is
  // absent or has decreased counts as unchanged.
  std::vector<std::string> Look(absl::Time now, absl::Span<const metrics::PortSnapshot> ports);

 private:
  struct Past {
    absl::Time seen;
    fabric::PortCounters counters;
    absl::Time told = absl::InfinitePast();
  };
  std::map<int, Past> past_;  // by rail
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_COMMUNICATOR_CONGESTION_H_
