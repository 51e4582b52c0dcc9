// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/sizes.h"

#include <cctype>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace railhead::perf {
namespace {

constexpr uint64_t kLargest = uint64_t{1} << 40;

}  // namespace

absl::StatusOr<uint64_t> ParseSize(absl::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a size: write bytes, or a number with K, M or G, up to ",
                   kLargest >> 30, "G"));
  absl::string_view digits = text;
  int shift = 0;
  if (!digits.empty()) {
    switch (std::toupper(static_cast<unsigned char>(digits.back()))) {
      case 'K':
        shift = 10;
        break;
      case 'M':
        shift = 20;
        break;
      case 'G':
        shift = 30;
        break;
      default:
        break;
    }
  }
  if (shift > 0) digits.remove_suffix(1);
  uint64_t value = 0;
  if (digits.empty() || std::isdigit(static_cast<unsigned char>(digits.front())) == 0 ||
      !absl::SimpleAtoi(digits, &value) || value > kLargest >> shift) {
    return wrong;
  }
  return value << shift;
}

absl::StatusOr<std::vector<uint64_t>> Sizes(uint64_t begin, uint64_t end, uint64_t factor) {
  if (begin < sizeof(float)) {
    return absl::InvalidArgumentError("the smallest size must be at least 4 bytes, one float32");
  }
  if (end < begin) {
    return absl::InvalidArgumentError(
        absl::StrCat("the largest size, ", end, ", is below the smallest, ", begin));
  }
  if (factor < 2) return absl::InvalidArgumentError("the factor must be at least 2");
  std::vector<uint64_t> sizes;
  for (uint64_t size = begin; size <= end; size *= factor) {
    sizes.push_back(size / sizeof(float) * sizeof(float));
    if (size > end / factor) break;
  }
  return sizes;
}

}  // namespace railhead::perf
