// SPDX-License-Identifier: Apache-2.0
//
// Helpers of algorithms that reduce in several steps.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_REDUCING_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_REDUCING_H_

#include <cstddef>

#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Returns the reduction of every step but the last: a mean is a sum until the last rank has added
// its values.
inline reduce::Reduction Partial(reduce::Reduction whole) {
  whole.divisor = 1;
  return whole;
}

// Returns true if nothing must be sent (no values, or one rank); the result is complete then.
inline bool ReducedAlone(int world_size, const reduce::Reduction& reduction, const std::byte* send,
                         std::byte* receive, size_t count) {
  if (count > 0 && world_size > 1) return false;
  if (count > 0) reduce::Reduce(reduction, {send}, receive, count, reduce::Stores::kNormal);
  return true;
}

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_REDUCING_H_
