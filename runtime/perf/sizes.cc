// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/sizes.h"

#include <algorithm>
#include <cctype>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace railhead::perf {
namespace {

constexpr uint64_t kLargest = uint64_t{1} << 40;

}  // namespace

absl::StatusOr<uint64_t> ParseSize(absl::string_view text) {
  absl::Status wrong = absl::InvalidArgumentError(
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

absl::Status CheckRange(const SizeRange& range) {
  if (range.end < range.begin) {
    return absl::InvalidArgumentError(
        absl::StrCat("the largest size, ", range.end, ", is below the smallest, ", range.begin));
  }
  if (range.factor < 2) return absl::InvalidArgumentError("the factor must be at least 2");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> Sizes(const SizeRange& range, uint64_t unit) {
  std::vector<uint64_t> sizes;
  uint64_t size = range.begin;
  if (size == 0) {
    sizes.push_back(0);
    size = unit;
  } else if (range.end < unit) {
    return absl::InvalidArgumentError(
        absl::StrCat("the largest size, ", range.end, ", is below the minimum of ", unit,
                     " bytes: one value, or one for each rank if the size is divided by ranks"));
  }
  while (size <= range.end) {
    const uint64_t whole = std::max(size / unit, uint64_t{1}) * unit;
    if (sizes.empty() || sizes.back() < whole) sizes.push_back(whole);
    if (size > range.end / range.factor) break;
    size *= range.factor;
  }
  return sizes;
}

}  // namespace railhead::perf
