// SPDX-License-Identifier: Apache-2.0
//
// Helpers of algorithms that reduce in several steps.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_REDUCING_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_REDUCING_H_

#include <cstddef>

#include "runtime/base/parts.h"
#include "runtime/collectives/operation.h"
#include "runtime/reduce/reduce.h"

namespace railhead::collectives {

// Returns the reduction of every step but the last: a mean is a sum until the last rank has added
// its values.
inline reduce::Reduction Partial(reduce::Reduction whole) {
  whole.divisor = 1;
  return whole;
}

// Returns true if nothing must be sent (no values, or one rank); the result is complete then.
inline bool ReducedAlone(const Operation& operation) {
  const Parts& parts = operation.send_parts;
  const bool scatters = operation.collective == Collective::kReduceScatter;
  const size_t count = scatters ? parts.largest() : operation.count;
  if (count > 0 && operation.ranks > 1) return false;
  const std::byte* const send =
      operation.send + (scatters ? parts[0].begin * operation.element() : 0);
  if (count > 0) {
    reduce::Reduce(operation.reduction, {send}, operation.receive, count, reduce::Stores::kNormal);
  }
  return true;
}

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_REDUCING_H_
