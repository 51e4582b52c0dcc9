// SPDX-License-Identifier: Apache-2.0
//
// Rounds sizes up to multiples of a cache line or page.
#ifndef RAILHEAD_RUNTIME_BASE_ROUND_UP_H_
#define RAILHEAD_RUNTIME_BASE_ROUND_UP_H_

#include <cstddef>

namespace railhead {

// Returns the next multiple of `unit`.
constexpr size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_ROUND_UP_H_
