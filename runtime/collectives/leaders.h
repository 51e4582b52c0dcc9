// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_LEADERS_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_LEADERS_H_

#include <algorithm>
#include <cstddef>

namespace railhead::collectives {

// How many of the ranks of a place share the sending of so many bytes to other places. A message
// costs as much as some thousand bytes, so each of them has at least so many to send.
inline size_t Leaders(size_t bytes, size_t local_ranks) {
  constexpr size_t kWorthIt = size_t{8} << 10U;
  return std::clamp(bytes / kWorthIt, size_t{1}, local_ranks);
}

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_LEADERS_H_
