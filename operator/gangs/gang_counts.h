// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_GANGS_GANG_COUNTS_H_
#define RAILHEAD_OPERATOR_GANGS_GANG_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace railhead::op::gangs {

// For Prometheus. What there is just now is nothing while another replica leads; what this one has
// done only grows.
struct GangCounts {
  size_t incomplete = 0;
  size_t waiting = 0;
  size_t running = 0;
  absl::Duration longest_wait;  // of those that wait for room, since their first pod was made
  std::string longest_space;    // whose wait this is, namespace and name; "" where none waits
  std::string longest_name;
  uint64_t placed = 0;     // decisions that were carried out
  uint64_t replanned = 0;  // pods evicted because no scheduler bound them

  bool operator==(const GangCounts&) const = default;
};

}  // namespace railhead::op::gangs

#endif  // RAILHEAD_OPERATOR_GANGS_GANG_COUNTS_H_
