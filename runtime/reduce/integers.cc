// SPDX-License-Identifier: Apache-2.0
#include "runtime/reduce/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/reduce/integers.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// foreach_target must come first.
#include "hwy/highway.h"
#include "runtime/reduce/cpu.h"
#include "runtime/reduce/kernels.h"
#include "runtime/reduce/loop-inl.h"

// Compiled once for each target, and picked from among them by name.
// NOLINTBEGIN(misc-use-internal-linkage)
HWY_BEFORE_NAMESPACE();
namespace railhead::reduce::HWY_NAMESPACE {

template <class T>
struct Integer {
  static constexpr size_t kElementBytes = sizeof(T);
  static constexpr size_t kParts = 1;
  using Tag = hn::ScalableTag<T>;
  using Vector = hn::Vec<Tag>;

  static HWY_INLINE void Unpack(ByteVector bytes, Vector* to) { *to = hn::BitCast(Tag(), bytes); }
  static HWY_INLINE ByteVector Pack(const Vector* from) { return hn::BitCast(ByteTag(), *from); }
};

// The low half of the product. CPUs lack it for 8 bits, and most for 64.
template <class T, class V = typename Integer<T>::Vector>
HWY_INLINE V Multiply(V a, V b) {
  const typename Integer<T>::Tag d;
  if constexpr (sizeof(T) == 1) {
    const hn::Repartition<uint16_t, decltype(d)> wide;
    const auto a2 = hn::BitCast(wide, a);
    const auto b2 = hn::BitCast(wide, b);
    const auto high = hn::Set(wide, 0xff00);
    const auto even = hn::AndNot(high, hn::Mul(a2, b2));
    const auto odd = hn::Mul(hn::ShiftRight<8>(a2), hn::And(b2, high));
    return hn::BitCast(d, hn::Or(even, odd));
  } else if constexpr (sizeof(T) == 8) {
    const hn::Repartition<uint32_t, decltype(d)> narrow;
    const auto low = [&](V v) HWY_ATTR { return hn::BitCast(narrow, v); };
    const auto high = [&](V v) HWY_ATTR { return hn::BitCast(narrow, hn::ShiftRight<32>(v)); };
    const auto cross = hn::Add(hn::MulEven(high(a), low(b)), hn::MulEven(low(a), high(b)));
    return hn::Add(hn::MulEven(low(a), low(b)), hn::ShiftLeft<32>(cross));
  } else {
    return hn::Mul(a, b);
  }
}

template <class T>
struct Plain {
  using Vector = typename Integer<T>::Vector;
  HWY_INLINE Vector Prepare(Vector v, size_t /*input*/) const { return v; }
  HWY_INLINE Vector Finish(Vector v) const { return v; }
};

template <class T>
struct Sum : Plain<T> {
  using Vector = typename Integer<T>::Vector;
  HWY_INLINE Vector Join(Vector a, Vector b) const { return hn::Add(a, b); }
};

template <class T>
struct ScaledSum : Sum<T> {
  using Vector = typename Integer<T>::Vector;
  HWY_INLINE Vector Prepare(Vector v, size_t input) const {
    return Multiply<T>(v,
                       hn::Set(typename Integer<T>::Tag(), static_cast<T>(scalars[input].integer)));
  }
  const Scalar* scalars;
};

template <class T>
struct Product : Plain<T> {
  using Vector = typename Integer<T>::Vector;
  HWY_INLINE Vector Join(Vector a, Vector b) const { return Multiply<T>(a, b); }
};

template <class T>
struct Minimum : Plain<T> {
  using Vector = typename Integer<T>::Vector;
  HWY_INLINE Vector Join(Vector a, Vector b) const { return hn::Min(a, b); }
};

template <class T>
struct Maximum : Plain<T> {
  using Vector = typename Integer<T>::Vector;
  HWY_INLINE Vector Join(Vector a, Vector b) const { return hn::Max(a, b); }
};

struct BitAnd : Plain<uint8_t> {
  HWY_INLINE ByteVector Join(ByteVector a, ByteVector b) const { return hn::And(a, b); }
};

struct BitOr : Plain<uint8_t> {
  HWY_INLINE ByteVector Join(ByteVector a, ByteVector b) const { return hn::Or(a, b); }
};

struct BitXor : Plain<uint8_t> {
  HWY_INLINE ByteVector Join(ByteVector a, ByteVector b) const { return hn::Xor(a, b); }
};

// Sums and products wrap, so that they are the same with and without signs.
template <class Signed, class Unsigned>
void ReduceAs(const Call& call) {
  const bool is_signed =
      call.type == rhInt8 || call.type == rhInt16 || call.type == rhInt32 || call.type == rhInt64;
  switch (call.op) {
    case rhProd:
      return Run<Integer<Unsigned>, Product<Unsigned>, 0>(call, {});
    case rhMax:
      return is_signed ? Run<Integer<Signed>, Maximum<Signed>, 0>(call, {})
                       : Run<Integer<Unsigned>, Maximum<Unsigned>, 0>(call, {});
    case rhMin:
      return is_signed ? Run<Integer<Signed>, Minimum<Signed>, 0>(call, {})
                       : Run<Integer<Unsigned>, Minimum<Unsigned>, 0>(call, {});
    default:
      break;
  }
  if (call.scalars != nullptr) {
    return Run<Integer<Unsigned>, ScaledSum<Unsigned>, 0>(call, {{}, call.scalars});
  }
  RunByInputs<Integer<Unsigned>, Sum<Unsigned>>(call, {});
}

void ReduceIntegers(const Call& call) {
  switch (call.op) {
    case rhBand:
      return Run<Integer<uint8_t>, BitAnd, 0>(call, {});
    case rhBor:
      return Run<Integer<uint8_t>, BitOr, 0>(call, {});
    case rhBxor:
      return Run<Integer<uint8_t>, BitXor, 0>(call, {});
    default:
      break;
  }
  switch (SizeOf(call.type)) {
    case 1:
      return ReduceAs<int8_t, uint8_t>(call);
    case 2:
      return ReduceAs<int16_t, uint16_t>(call);
    case 4:
      return ReduceAs<int32_t, uint32_t>(call);
    default:
      return ReduceAs<int64_t, uint64_t>(call);
  }
}

}  // namespace railhead::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
// NOLINTEND(misc-use-internal-linkage)

#if HWY_ONCE
namespace railhead::reduce {

int64_t CompiledTargets() { return HWY_TARGETS; }

void ReduceIntegers(const Call& call) { RAILHEAD_PICK(ReduceIntegers)(call); }

}  // namespace railhead::reduce
#endif
