// SPDX-License-Identifier: Apache-2.0
//
// What algorithms share that work on a power of two ranks: the others are guests, each of the rank
// whose number is less by that power. A guest gives its input before the exchanges and gets the
// result after them.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_GUEST_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_GUEST_H_

#include <bit>
#include <cstddef>

#include "runtime/collectives/schedule.h"

namespace railhead::collectives {

// The largest power of two of the ranks.
inline int CoreRanks(int world_size) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(world_size)));
}

// A guest's part. Its result cannot come before its input has arrived.
inline OneEachWay Guest(int host, const std::byte* send, std::byte* receive, size_t bytes) {
  return {Schedule::To(host, send, bytes), Schedule::From(host, receive, bytes)};
}

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_GUEST_H_
