// SPDX-License-Identifier: Apache-2.0
//
// Data whose sum over all ranks is known without asking anybody. Every value is a small whole
// number, so float32 sums are exact in any order; it depends on rank, index and round, so a missing
// rank, a shifted block and a stale result all show.
#ifndef RAILHEAD_RUNTIME_PERF_PATTERN_H_
#define RAILHEAD_RUNTIME_PERF_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace railhead::perf {

// Up to so many ranks the sums stay below 2^24 and so exact.
inline constexpr int kMostExactRanks = 1000;

void FillPattern(int rank, uint64_t round, absl::Span<float> values);

// How many values differ from the sum of all ranks' patterns of that round.
uint64_t CountWrong(int ranks, uint64_t round, absl::Span<const float> values);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_PATTERN_H_
