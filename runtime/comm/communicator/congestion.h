// SPDX-License-Identifier: Apache-2.0
//
// When a job's rails meet congestion: what to say of counters that rise while it runs. Pure.
//
// The counters are those of the rails' ports (fabric/port_counters.h), so they count what everybody
// does there, and a warning says so.
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
  // How far apart two looks should be. Some adapters ask their firmware for every counter.
  static constexpr absl::Duration kPace = absl::Seconds(5);
  // After a warning about a rail there is no other about it for so long.
  static constexpr absl::Duration kQuiet = absl::Minutes(10);

  // Compares what the ports have counted with the look before. Returns a text for each rail whose
  // counters have risen noticeably since: which counter, by how much in how long, and what to do.
  // A counter that is absent, or has gone back, has not risen.
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
