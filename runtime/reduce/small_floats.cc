// SPDX-License-Identifier: Apache-2.0
#include "runtime/reduce/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/reduce/small_floats.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// foreach_target must come first.
#include "hwy/highway.h"
#include "runtime/reduce/cpu.h"
#include "runtime/reduce/float_operators-inl.h"
#include "runtime/reduce/kernels.h"
#include "runtime/reduce/small_formats-inl.h"

// Compiled once for each target, and picked from among them by name.
// NOLINTBEGIN(misc-use-internal-linkage)
HWY_BEFORE_NAMESPACE();
namespace railhead::reduce::HWY_NAMESPACE {

void ReduceSmallFloats(const Call& call) {
  switch (call.type) {
    case rhFloat16:
      return ReduceFormat<Float16, float>(call);
    case rhBfloat16:
      return ReduceFormat<Bfloat16, float>(call);
    case rhFloat8e4m3:
      return ReduceFormat<Float8e4m3, float>(call);
    default:
      return ReduceFormat<Float8e5m2, float>(call);
  }
}

}  // namespace railhead::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
// NOLINTEND(misc-use-internal-linkage)

#if HWY_ONCE
namespace railhead::reduce {

void ReduceSmallFloats(const Call& call) { RAILHEAD_PICK(ReduceSmallFloats)(call); }

}  // namespace railhead::reduce
#endif
