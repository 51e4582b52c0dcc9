// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_PERF_SIZES_H_
#define RAILHEAD_RUNTIME_PERF_SIZES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::perf {

// "8", "64K", "8M", "1G" in bytes; K, M and G are powers of 1024.
absl::StatusOr<uint64_t> ParseSize(absl::string_view text);

// begin, begin * factor, ... up to end, each rounded down to whole float32 values.
// InvalidArgument says which limit is wrong.
absl::StatusOr<std::vector<uint64_t>> Sizes(uint64_t begin, uint64_t end, uint64_t factor);

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_SIZES_H_
