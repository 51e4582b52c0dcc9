// SPDX-License-Identifier: Apache-2.0
//
// The CPUs for which the vector code is compiled; to be included before anything of Highway's.
// AVX-512, AVX2 and NEON, and plain code for all others. Whatever has an RDMA device has one of the
// three; each more would cost compile time, and SVE's vectors cannot stand in arrays.
#ifndef RAILHEAD_RUNTIME_REDUCE_TARGETS_H_
#define RAILHEAD_RUNTIME_REDUCE_TARGETS_H_

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

// Highway distrusts its plain code under GCC before 12.3, whose vectorizer gets it wrong (GCC bug
// 106322), and would leave one lane where we need several. The build turns that vectorizer off.
#define HWY_BROKEN_EMU128 0

#endif  // RAILHEAD_RUNTIME_REDUCE_TARGETS_H_
