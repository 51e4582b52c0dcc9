// SPDX-License-Identifier: Apache-2.0
//
// Data whose outcome is known without asking anybody: it follows from rank, index and round, so a
// missing rank, a shifted block and a stale result all show. What is only moved is made of
// arbitrary bits, what is reduced of the whole numbers of numbers.h.
#ifndef RAILHEAD_RUNTIME_PERF_PATTERN_H_
#define RAILHEAD_RUNTIME_PERF_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/perf/layout.h"
#include "runtime/perf/types.h"

namespace railhead::perf {

// What ranks send, and what must become of it. `op` nullptr: values are only moved.
class Pattern {
 public:
  Pattern(const Type& type, const Operator* op, int ranks, int rank);

  // Writes the first `count` values that this rank sends in a round.
  void Fill(uint64_t round, size_t count, std::byte* send) const;

  // How many values of these pieces are not what they must be, bit for bit.
  uint64_t CountWrong(uint64_t round, const std::vector<Piece>& pieces,
                      const std::byte* received) const;

 private:
  const Type& type_;
  const bool reduces_;
  const int rank_;
  // Of reductions: one period of what this rank sends, and of what becomes of it, as bits.
  std::vector<uint64_t> mine_;
  std::vector<uint64_t> outcomes_;
};

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_PATTERN_H_
