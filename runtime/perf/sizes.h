// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_PERF_SIZES_H_
#define RAILHEAD_RUNTIME_PERF_SIZES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::perf {

// "8", "64K", "8M", "1G" in bytes; K, M and G are powers of 1024.
absl::StatusOr<uint64_t> ParseSize(absl::string_view text);

// Sizes in bytes: `begin`, and each so many times the last, up to `end`.
struct SizeRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t factor = 2;
};

// InvalidArgument says which limit is wrong.
absl::Status CheckRange(const SizeRange& range);

// The sizes of a range of which CheckRange approves, each rounded down to whole units, but to one
// unit at least; no size twice. 0 is given where the range begins with it, and the next is a unit.
// InvalidArgument if not one unit fits.
absl::StatusOr<std::vector<uint64_t>> Sizes(const SizeRange& range, uint64_t unit);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_SIZES_H_
