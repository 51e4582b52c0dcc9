// SPDX-License-Identifier: Apache-2.0
//
// Test data with known results: values follow from rank, index and round, so that a missing rank, a
// shifted block or a stale result is detected. Moved data are arbitrary bits; reduced data are the
// integers of numbers.h.
#ifndef RAILHEAD_RUNTIME_PERF_PATTERN_H_
#define RAILHEAD_RUNTIME_PERF_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/perf/layout.h"
#include "runtime/perf/types.h"

namespace railhead::perf {

// Data that ranks send, and the expected result. `op` null: values are only moved.
class Pattern {
 public:
  Pattern(const Type& type, const Operator* op, int ranks, int rank);

  // Writes the first `count` values that this rank sends in a round.
  void Fill(uint64_t round, size_t count, std::byte* send) const;

  // Returns the number of values of these pieces that differ in any bit from the expected ones.
  uint64_t CountWrong(uint64_t round, const std::vector<Piece>& pieces,
                      const std::byte* received) const;

 private:
  const Type& type_;
  const bool reduces_;
  const int rank_;
  // For reductions: one period of this rank's values, and of the results, as bits.
  std::vector<uint64_t> mine_;
  std::vector<uint64_t> outcomes_;
};

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_PATTERN_H_
