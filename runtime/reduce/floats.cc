// SPDX-License-Identifier: Apache-2.0
#include "runtime/reduce/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/reduce/floats.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// foreach_target must come first.
#include "hwy/highway.h"
#include "runtime/reduce/cpu.h"
#include "runtime/reduce/float_operators-inl.h"
#include "runtime/reduce/kernels.h"
#include "runtime/reduce/loop-inl.h"

// Compiled once for each target, and picked from among them by name.
// NOLINTBEGIN(misc-use-internal-linkage)
HWY_BEFORE_NAMESPACE();
namespace railhead::reduce::HWY_NAMESPACE {

// Floats that are computed as what they are.
template <class T>
struct Native {
  static constexpr size_t kElementBytes = sizeof(T);
  static constexpr size_t kParts = 1;
  using Tag = hn::ScalableTag<T>;
  using Vector = hn::Vec<Tag>;

  static HWY_INLINE void Unpack(ByteVector bytes, Vector* to) { *to = hn::BitCast(Tag(), bytes); }
  static HWY_INLINE ByteVector Pack(const Vector* from) {
    return hn::BitCast(ByteTag(), WithOneNaN<T>(*from));
  }
};

void ReduceFloats(const Call& call) {
  if (call.type == rhFloat64) return ReduceFormat<Native<double>, double>(call);
  ReduceFormat<Native<float>, float>(call);
}

}  // namespace railhead::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
// NOLINTEND(misc-use-internal-linkage)

#if HWY_ONCE
namespace railhead::reduce {

void ReduceFloats(const Call& call) { RAILHEAD_PICK(ReduceFloats)(call); }

}  // namespace railhead::reduce
#endif
