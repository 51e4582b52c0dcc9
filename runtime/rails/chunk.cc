// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/chunk.h"

#include <algorithm>

namespace railhead::rails {
namespace {

constexpr size_t kWhole = size_t{16} << 10;  // transfers up to this size are not cut
// The limit with one rail: chunks only let the receiver start earlier, and cost system calls.
constexpr size_t kWholeOnOneRail = size_t{64} << 10;
constexpr size_t kLongest = size_t{256} << 10;
constexpr size_t kPiecesPerRail = 4;
constexpr size_t kStep = size_t{4} << 10;  // pieces are whole pages, and so whole values

}  // namespace

size_t ChunkSize(size_t transfer, size_t rails, size_t max_payload) {
  const size_t whole = rails == 1 ? kWholeOnOneRail : kWhole;
  if (transfer <= std::min(whole, max_payload)) return transfer;
  const size_t fair = transfer / (rails * kPiecesPerRail);
  const size_t rounded = (fair + kStep - 1) / kStep * kStep;
  return std::min(std::clamp(rounded, whole, kLongest),
                  max_payload / sizeof(double) * sizeof(double));
}

}  // namespace railhead::rails
