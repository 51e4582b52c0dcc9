// SPDX-License-Identifier: Apache-2.0
//
// Whole numbers whose reduction over all ranks is known without asking anybody, so small that every
// partial result is one too and exists in the type: the outcome is exact in whatever order ranks
// are reduced.
#ifndef RAILHEAD_RUNTIME_PERF_NUMBERS_H_
#define RAILHEAD_RUNTIME_PERF_NUMBERS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "runtime/perf/types.h"

namespace railhead::perf {

// OutOfRange if the exact outcome is not known for so many ranks. Only an average has a limit: the
// sum that is divided must be a multiple of the ranks.
absl::Status IsKnown(const Type& type, const Operator& op, int ranks);

// The number that `rank` gives at a place, and what comes of all ranks'.
int64_t Contribution(const Type& type, const Operator& op, int ranks, int rank, size_t place);
int64_t Outcome(const Type& type, const Operator& op, int ranks, size_t place);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_NUMBERS_H_
