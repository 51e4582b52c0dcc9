// SPDX-License-Identifier: Apache-2.0
#include "runtime/reduce/cpu.h"

#include <atomic>

#include "runtime/reduce/targets.h"
// targets.h must come first.
#include "hwy/detect_targets.h"

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace railhead::reduce {
namespace {

std::atomic<int64_t> limit{0};

#if HWY_ARCH_X86

// Features that the compiler may use in Highway's code for AVX2, and for AVX-512. The compiler's
// builtin also checks whether the operating system saves the registers of a thread.
bool HasAvx2() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __builtin_cpu_supports("aes") != 0 && __builtin_cpu_supports("pclmul") != 0 &&
         __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0;
}

int64_t Detect() {
  return HWY_STATIC_TARGET | (HasAvx2() ? HWY_AVX2 : 0) | (HasAvx512() ? HWY_AVX3 : 0);
}

#else

// Elsewhere all CPUs have what code is compiled for.
int64_t Detect() { return HWY_STATIC_TARGET; }

#endif

}  // namespace

int64_t SupportedTargets() {
  static const int64_t detected = Detect();
  const int64_t limited = limit.load(std::memory_order_relaxed);
  return limited == 0 ? detected : detected & limited;
}

void LimitTargetsForTest(int64_t targets) { limit.store(targets, std::memory_order_relaxed); }

Kernel Pick(const Kernels& kernels) {
  const int64_t targets = SupportedTargets();
  if (kernels.avx512 != nullptr && (targets & HWY_AVX3) != 0) return kernels.avx512;
  if (kernels.avx2 != nullptr && (targets & HWY_AVX2) != 0) return kernels.avx2;
  if (kernels.neon != nullptr && (targets & HWY_NEON) != 0) return kernels.neon;
  return kernels.plain;
}

}  // namespace railhead::reduce
