// SPDX-License-Identifier: Apache-2.0
//
// Buffer sizes of railhead-perf: the user's text, and the series to measure. Pure.
#ifndef RAILHEAD_RUNTIME_PERF_SIZES_H_
#define RAILHEAD_RUNTIME_PERF_SIZES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::perf {

// Parses "8", "64K", "8M", "1G" into bytes; K, M and G are powers of 1024.
absl::StatusOr<uint64_t> ParseSize(absl::string_view text);

// Sizes in bytes: `begin`, each the last times `factor`, up to `end`.
struct SizeRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t factor = 2;
};

// Returns InvalidArgument that names the invalid limit.
absl::Status CheckRange(const SizeRange& range);

// Returns the sizes of a valid range, each rounded down to whole units, at least one unit; without
// duplicates. Includes 0 if the range starts with it; the next size is then one unit.
// InvalidArgument if not even one unit fits.
absl::StatusOr<std::vector<uint64_t>> Sizes(const SizeRange& range, uint64_t unit);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_SIZES_H_
