// SPDX-License-Identifier: Apache-2.0
//
// Pseudorandom numbers for the test data of railhead-perf. All ranks compute the same.
#ifndef RAILHEAD_RUNTIME_PERF_MIX_H_
#define RAILHEAD_RUNTIME_PERF_MIX_H_

#include <cstdint>

namespace railhead::perf {

// Spreads every bit of `x` over the result.
inline uint64_t Mix(uint64_t x) {
  for (int i = 0; i < 2; ++i) {
    x = (x ^ (x >> 32)) * 0x9e3779b97f4a7c15;
  }
  return x ^ (x >> 29);
}

}  // namespace railhead::perf

#endif  // RAILHEAD_RUNTIME_PERF_MIX_H_
