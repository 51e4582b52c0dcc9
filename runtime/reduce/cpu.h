// SPDX-License-Identifier: Apache-2.0
//
// Detection of the vector code that this CPU can run. Highway's library could do that, but when
// loaded it measures the CPU's clock for a benchmark, which is half of a process's start time. So
// only its headers are used.
#ifndef RAILHEAD_RUNTIME_REDUCE_CPU_H_
#define RAILHEAD_RUNTIME_REDUCE_CPU_H_

#include <cstdint>

#include "runtime/reduce/kernels.h"

namespace railhead::reduce {

// Returns the compiled CPU kinds (targets.h) that this CPU supports, as Highway's bits: the lowest
// is the best.
int64_t SupportedTargets();
// Restricts them; 0: no restriction.
void LimitTargetsForTest(int64_t targets);

using Kernel = void (*)(const Call& call);
// Code of one kernel for each CPU kind; null if not compiled.
struct Kernels {
  Kernel avx512;
  Kernel avx2;
  Kernel neon;
  Kernel plain;
};
Kernel Pick(const Kernels& kernels);

}  // namespace railhead::reduce

// The code of `function` for this CPU; use after foreach_target.h.
#define RAILHEAD_PICK(function)                                                   \
  ::railhead::reduce::Pick({HWY_CHOOSE_AVX3(function), HWY_CHOOSE_AVX2(function), \
                            HWY_CHOOSE_NEON(function), HWY_CHOOSE_FALLBACK(function)})

#endif  // RAILHEAD_RUNTIME_REDUCE_CPU_H_
