// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/chunk.h"

#include <algorithm>

namespace railhead::rails {
namespace {

constexpr size_t kWhole = size_t{16} << 10;  // transfers up to this size are not cut
constexpr size_t kLongest = size_t{256} << 10;
constexpr size_t kPiecesPerRail = 4;
constexpr size_t kStep = size_t{4} << 10;  // pieces are whole pages, and so whole values

}  // namespace

size_t ChunkSize(size_t transfer, size_t rails, size_t max_payload) {
  const bool one_rail = rails == 1;
  if (transfer <= max_payload && (one_rail || transfer <= kWhole)) return transfer;
  const size_t limit = max_payload / sizeof(double) * sizeof(double);
  if (one_rail) return limit;
  const size_t fair = transfer / (rails * kPiecesPerRail);
  const size_t rounded = (fair + kStep - 1) / kStep * kStep;
  return std::min(std::clamp(rounded, kWhole, kLongest), limit);
}

}  // namespace railhead::rails
