// SPDX-License-Identifier: Apache-2.0
//
// Operators on vectors of fp32 or fp64, independent of the format in memory.

// Included once for each target: Highway's kind of guard.
#if defined(RAILHEAD_RUNTIME_REDUCE_FLOAT_OPERATORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAILHEAD_RUNTIME_REDUCE_FLOAT_OPERATORS_INL_H_
#undef RAILHEAD_RUNTIME_REDUCE_FLOAT_OPERATORS_INL_H_
#else
#define RAILHEAD_RUNTIME_REDUCE_FLOAT_OPERATORS_INL_H_
#endif

#include <cstddef>
#include <limits>

#include "hwy/highway.h"
#include "runtime/reduce/kernels.h"
#include "runtime/reduce/loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace railhead::reduce::HWY_NAMESPACE {

// Replaces every NaN of a result by this one: which NaN an operation returns depends on the CPU and
// on the order of operands in the compiled code.
template <class T, class V>
HWY_INLINE V WithOneNaN(V v) {
  const hn::ScalableTag<T> d;
  return hn::IfThenElse(hn::IsNaN(v), hn::Set(d, std::numeric_limits<T>::quiet_NaN()), v);
}

template <class T>
struct FloatOperator {
  using Vector = hn::Vec<hn::ScalableTag<T>>;
  HWY_INLINE Vector Prepare(Vector v, size_t /*input*/) const { return v; }
  HWY_INLINE Vector Finish(Vector v) const { return v; }
};

template <class T>
struct FloatSum : FloatOperator<T> {
  using Vector = typename FloatOperator<T>::Vector;
  explicit FloatSum(const Call& call)
      : divides(call.op == rhAvg), divisor(static_cast<T>(call.divisor)) {}

  HWY_INLINE Vector Join(Vector a, Vector b) const { return hn::Add(a, b); }
  HWY_INLINE Vector Finish(Vector v) const {
    return divides ? hn::Div(v, hn::Set(hn::ScalableTag<T>(), divisor)) : v;
  }

  bool divides;
  T divisor;
};

template <class T>
struct ScaledFloatSum : FloatSum<T> {
  using Vector = typename FloatOperator<T>::Vector;
  explicit ScaledFloatSum(const Call& call) : FloatSum<T>(call), scalars(call.scalars) {}

  HWY_INLINE Vector Prepare(Vector v, size_t input) const {
    return hn::Mul(v, hn::Set(hn::ScalableTag<T>(), static_cast<T>(scalars[input].real)));
  }

  const Scalar* scalars;
};

template <class T>
struct FloatProduct : FloatOperator<T> {
  using Vector = typename FloatOperator<T>::Vector;
  HWY_INLINE Vector Join(Vector a, Vector b) const { return hn::Mul(a, b); }
};

// Returns the smaller or larger value where CPUs disagree: NaN wins, and zeros are combined by
// `zero`, a bit operation, as equal values differ at most in the sign of zero.
template <class V, class Mask>
HWY_INLINE V Choose(V a, V b, Mask take_b, V zero) {
  const V chosen = hn::IfThenElse(take_b, b, a);
  return hn::IfThenElse(hn::IsNaN(b), b, hn::IfThenElse(hn::Eq(a, b), zero, chosen));
}

template <class T>
struct FloatMinimum : FloatOperator<T> {
  using Vector = typename FloatOperator<T>::Vector;
  HWY_INLINE Vector Join(Vector a, Vector b) const {
    return Choose(a, b, hn::Lt(b, a), hn::Or(a, b));
  }
};

template <class T>
struct FloatMaximum : FloatOperator<T> {
  using Vector = typename FloatOperator<T>::Vector;
  HWY_INLINE Vector Join(Vector a, Vector b) const {
    return Choose(a, b, hn::Lt(a, b), hn::And(a, b));
  }
};

// Floats of `Format`, computed in T.
template <class Format, class T>
void ReduceFormat(const Call& call) {
  switch (call.op) {
    case rhProd:
      return Run<Format, FloatProduct<T>, 0>(call, {});
    case rhMin:
      return Run<Format, FloatMinimum<T>, 0>(call, {});
    case rhMax:
      return Run<Format, FloatMaximum<T>, 0>(call, {});
    default:
      break;
  }
  if (call.scalars != nullptr) {
    return Run<Format, ScaledFloatSum<T>, 0>(call, ScaledFloatSum<T>(call));
  }
  RunByInputs<Format, FloatSum<T>>(call, FloatSum<T>(call));
}

}  // namespace railhead::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard of a target
