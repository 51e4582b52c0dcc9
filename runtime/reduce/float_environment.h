// SPDX-License-Identifier: Apache-2.0
//
// Default floating-point environment for reductions. Frameworks change it (they flush denormals for
// speed), and ranks would get different results.
#ifndef RAILHEAD_RUNTIME_REDUCE_FLOAT_ENVIRONMENT_H_
#define RAILHEAD_RUNTIME_REDUCE_FLOAT_ENVIRONMENT_H_

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace railhead::reduce {

// While it lives, this thread rounds to nearest, computes with denormals and traps nothing.
class DefaultFloatEnvironment {
 public:
#if defined(__x86_64__)
  // Only the control bits: the x87 unit, which <cfenv> saves too, is slow and not used.
  DefaultFloatEnvironment() : saved_(_mm_getcsr()), changed_((saved_ & ~kFlags) != kControls) {
    if (changed_) _mm_setcsr(kControls);
  }
  ~DefaultFloatEnvironment() {
    if (changed_) _mm_setcsr(saved_);
  }
#else
  DefaultFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
#endif
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned kFlags = 0x3f;
  static constexpr unsigned kControls = 0x1f80;
  unsigned saved_;
  bool changed_;
#else
  std::fenv_t saved_;
#endif
};

}  // namespace railhead::reduce

#endif  // RAILHEAD_RUNTIME_REDUCE_FLOAT_ENVIRONMENT_H_
