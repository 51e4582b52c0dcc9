// SPDX-License-Identifier: Apache-2.0
//
// Which of the vector code this CPU can run. Highway's library would tell; but whenever it is
// loaded it first measures the CPU's clock, for a benchmark that it has as well, and that is half
// of what a process needs to start. So nothing of that library is used, only its headers.
#ifndef RAILHEAD_RUNTIME_REDUCE_CPU_H_
#define RAILHEAD_RUNTIME_REDUCE_CPU_H_

#include <cstdint>

#include "runtime/reduce/kernels.h"

namespace railhead::reduce {

// The kinds of CPU for which there is vector code (targets.h), as bits of Highway's, that this one
// is: the lowest is the best.
int64_t SupportedTargets();
// Limits them, 0: not any more.
void LimitTargetsForTest(int64_t targets);

using Kernel = void (*)(const Call& call);
// One text's code for each kind of CPU; null where it was not compiled.
struct Kernels {
  Kernel avx512;
  Kernel avx2;
  Kernel neon;
  Kernel plain;
};
Kernel Pick(const Kernels& kernels);

}  // namespace railhead::reduce

// The code of `function` for this CPU; behind foreach_target.h.
#define RAILHEAD_PICK(function)                                                   \
  ::railhead::reduce::Pick({HWY_CHOOSE_AVX3(function), HWY_CHOOSE_AVX2(function), \
                            HWY_CHOOSE_NEON(function), HWY_CHOOSE_FALLBACK(function)})

#endif  // RAILHEAD_RUNTIME_REDUCE_CPU_H_
