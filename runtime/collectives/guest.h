// SPDX-License-Identifier: Apache-2.0
//
// Extra ranks of algorithms that need a power of two: each extra rank is assigned to the rank whose
// number is less by that power. It sends its input before the exchanges and gets the result after
// them.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_GUEST_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_GUEST_H_

#include <bit>
#include <cstddef>

#include "runtime/collectives/operation.h"
#include "runtime/collectives/schedule.h"

namespace railhead::collectives {

// Returns the largest power of two that is at most the number of ranks.
inline int CoreRanks(int world_size) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(world_size)));
}

// Returns the schedule of an extra rank: its result cannot arrive before its input was sent.
inline OneEachWay Guest(int host, const Operation& operation) {
  const size_t bytes = operation.count * operation.element();
  return {Schedule::To(host, operation.send, bytes),
          Schedule::From(host, operation.receive, bytes)};
}

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_GUEST_H_
