// SPDX-License-Identifier: Apache-2.0
//
// Integers whose reduction over all ranks is known in advance, small enough that every partial
// result is an integer that the type can represent: the result is exact in any order of reduction.
#ifndef RAILHEAD_RUNTIME_PERF_NUMBERS_H_
#define RAILHEAD_RUNTIME_PERF_NUMBERS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "runtime/perf/types.h"

namespace railhead::perf {

// Returns OutOfRange if the exact result is unknown for this number of ranks. Only averages have a
// limit: the sum must be a multiple of the number of ranks.
absl::Status IsKnown(const Type& type, const Operator& op, int ranks);

// Return the value that `rank` contributes at a place, and the result over all ranks.
int64_t Contribution(const Type& type, const Operator& op, int ranks, int rank, size_t place);
int64_t Outcome(const Type& type, const Operator& op, int ranks, size_t place);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_NUMBERS_H_
