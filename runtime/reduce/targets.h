// SPDX-License-Identifier: Apache-2.0
//
// CPU kinds for which the vector code is compiled; include it before Highway. AVX-512, AVX2 and
// NEON, and plain code for others. CPUs with an RDMA device have one of the three; each more would
// cost compile time, and SVE vectors cannot be array elements.
#ifndef RAILHEAD_RUNTIME_REDUCE_TARGETS_H_
#define RAILHEAD_RUNTIME_REDUCE_TARGETS_H_

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

// Highway disables its plain code with GCC before 12.3, whose vectorizer miscompiles it (GCC bug
// 106322), and would use one lane instead of several. The build disables that vectorizer.
#define HWY_BROKEN_EMU128 0

#endif  // RAILHEAD_RUNTIME_REDUCE_TARGETS_H_
