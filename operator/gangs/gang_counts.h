// SPDX-License-Identifier: Apache-2.0
//
// Counts of gangs for Prometheus: computed in count_gangs.h, exported by Metrics.
#ifndef RAILHEAD_OPERATOR_GANGS_GANG_COUNTS_H_
#define RAILHEAD_OPERATOR_GANGS_GANG_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace railhead::op::gangs {

// Current values are 0 while another replica leads; totals of this replica only grow.
struct GangCounts {
  size_t incomplete = 0;
  size_t waiting = 0;
  size_t running = 0;
  absl::Duration longest_wait;  // of gangs that wait for room, since their first pod's creation
  std::string longest_space;    // that gang's namespace and name; "" if none waits
  std::string longest_name;
  uint64_t placed = 0;     // executed decisions
  uint64_t replanned = 0;  // pods evicted because no scheduler bound them

  bool operator==(const GangCounts&) const = default;
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_GANG_COUNTS_H_
