// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/pattern.h"

namespace railhead::perf {
namespace {

// The value of rank r is Shared + (r + 1) * Own. Both periods are prime, and so coprime with every
// block size.
uint64_t Shared(uint64_t index, uint64_t round) { return (index + round) % 127; }
uint64_t Own(uint64_t index, uint64_t round) { return 1 + (index + 7 * round) % 31; }

}  // namespace

void FillPattern(int rank, uint64_t round, absl::Span<float> values) {
  const auto weight = static_cast<uint64_t>(rank) + 1;
  for (uint64_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(Shared(i, round) + weight * Own(i, round));
  }
}

uint64_t CountWrong(int ranks, uint64_t round, absl::Span<const float> values) {
  const auto n = static_cast<uint64_t>(ranks);
  const uint64_t weights = n * (n + 1) / 2;
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < values.size(); ++i) {
    const auto expected = static_cast<float>(n * Shared(i, round) + weights * Own(i, round));
    if (!(values[i] == expected)) ++wrong;
  }
  return wrong;
}

}  // namespace railhead::perf
