// SPDX-License-Identifier: Apache-2.0
//
// Number of ranks of a place that send to other places in a hierarchical collective. Used by
// Hierarchy and the tuner.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_LEADERS_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_LEADERS_H_

#include <algorithm>
#include <cstddef>

namespace railhead::collectives {

// Returns how many ranks of a place send `bytes` to other places. A message costs as much as some
// thousand bytes, so each of them sends at least kWorthIt.
inline size_t Leaders(size_t bytes, size_t local_ranks) {
  constexpr size_t kWorthIt = size_t{8} << 10U;
  return std::clamp(bytes / kWorthIt, size_t{1}, local_ranks);
}

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_LEADERS_H_
