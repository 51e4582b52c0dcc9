// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of 16- and 8-bit floats as fp32 in registers. Elements may be permuted when
// loaded, if they are stored the same way.

// Included once for each target: Highway's kind of guard.
#if defined(RAILHEAD_RUNTIME_REDUCE_SMALL_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAILHEAD_RUNTIME_REDUCE_SMALL_FORMATS_INL_H_
#undef RAILHEAD_RUNTIME_REDUCE_SMALL_FORMATS_INL_H_
#else
#define RAILHEAD_RUNTIME_REDUCE_SMALL_FORMATS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "runtime/reduce/float_operators-inl.h"
#include "runtime/reduce/loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace railhead::reduce::HWY_NAMESPACE {

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;
using Word32Tag = hn::Repartition<uint32_t, FloatTag>;
using Word32Vector = hn::Vec<Word32Tag>;
using Word16Tag = hn::Repartition<uint16_t, FloatTag>;
using Word16Vector = hn::Vec<Word16Tag>;
using HalfWord16Tag = hn::Half<Word16Tag>;
using Float16Tag = hn::Rebind<hwy::float16_t, FloatTag>;

// The bits of a small float in the low part of each word: `kMantissa` bits after an exponent of
// `kExponent` bits. Everything above 2^kLargestExponent * (2 - 2^-kMantissa) becomes `kOverflow`,
// which the rounding must give for that value, and NaN `kNaN`.
//
// The rounding is the CPU's own: added to 2^23 times the weight of the result's last bit, a value
// keeps only multiples of that weight. The weight follows the value's exponent, down to that of the
// smallest normal number, so that denormals need no case of their own.
template <int kExponent, int kMantissa, uint32_t kOverflow, uint32_t kNaN>
HWY_INLINE Word32Vector Encode(FloatVector v) {
  const FloatTag f;
  const Word32Tag w;
  constexpr int kDropped = 23 - kMantissa;
  constexpr uint32_t kBias = (1U << (kExponent - 1)) - 1;
  constexpr uint32_t kRebias = 127 - kBias;
  // kOverflow as fp32.
  constexpr uint32_t kLimit = (kOverflow << kDropped) + (kRebias << 23);

  const auto magnitude = hn::Min(hn::Abs(v), hn::BitCast(f, hn::Set(w, kLimit)));
  const auto exponent = hn::And(hn::BitCast(w, magnitude), hn::Set(w, 0x7f800000U));
  const auto scale = hn::BitCast(
      w, hn::Max(hn::BitCast(f, exponent), hn::BitCast(f, hn::Set(w, (kRebias + 1) << 23))));
  const auto magic = hn::Add(scale, hn::Set(w, uint32_t{kDropped} << 23));
  const auto rounded = hn::BitCast(w, hn::Add(magnitude, hn::BitCast(f, magic)));
  // rounded - magic counts last bits from 0, the leading one included; what is left is to put the
  // exponent above it.
  constexpr uint32_t kExcess = (kRebias + 1) << kMantissa;
  const auto code = hn::Add(hn::Sub(rounded, magic),
                            hn::Sub(hn::ShiftRight<kDropped>(scale), hn::Set(w, kExcess)));
  constexpr int kSignShift = 31 - kExponent - kMantissa;
  const auto sign = hn::ShiftRight<kSignShift>(hn::And(hn::BitCast(w, v), hn::Set(w, 0x80000000U)));
  return hn::IfThenElse(hn::RebindMask(w, hn::IsNaN(v)), hn::Set(w, kNaN), hn::Or(code, sign));
}

// fp16 to fp32 and back, of as many as fit in a vector of fp32. The emulated target's conversions
// differ, so it has separate functions.
#if HWY_TARGET == HWY_EMU128
HWY_INLINE FloatVector FromFloat16(hn::Vec<HalfWord16Tag> bits) {
  const FloatTag f;
  const Word32Tag w;
  const auto wide = hn::PromoteTo(w, bits);
  const auto magnitude = hn::ShiftLeft<13>(hn::And(wide, hn::Set(w, 0x7fffU)));
  // As fp32 this is 2^-112 times the value, also where both are denormal.
  const auto value = hn::BitCast(w, hn::Mul(hn::BitCast(f, magnitude), hn::Set(f, 0x1p112F)));
  const auto special = hn::Gt(magnitude, hn::Set(w, (0x7c00U << 13) - 1));
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(w, 0x8000U)));
  return hn::BitCast(
      f, hn::Or(sign, hn::IfThenElse(special, hn::Or(value, hn::Set(w, 0x7f800000U)), value)));
}
HWY_INLINE hn::Vec<HalfWord16Tag> ToFloat16(FloatVector v) {
  return hn::TruncateTo(HalfWord16Tag(), Encode<5, 10, 0x7c00, 0x7e00>(v));
}
#else
HWY_INLINE FloatVector FromFloat16(hn::Vec<HalfWord16Tag> bits) {
  return hn::PromoteTo(FloatTag(), hn::BitCast(Float16Tag(), bits));
}
HWY_INLINE hn::Vec<HalfWord16Tag> ToFloat16(FloatVector v) {
  return hn::BitCast(HalfWord16Tag(), hn::DemoteTo(Float16Tag(), WithOneNaN<float>(v)));
}
#endif

// fp16 values into the two halves that fp32 needs, lower elements first.
HWY_INLINE void SplitFloat16(Word16Vector bits, FloatVector* to) {
  const HalfWord16Tag half;
  to[0] = FromFloat16(hn::LowerHalf(half, bits));
  to[1] = FromFloat16(hn::UpperHalf(half, bits));
}

struct Float16 {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kParts = 2;
  using Vector = FloatVector;

  static HWY_INLINE void Unpack(ByteVector bytes, Vector* to) {
    SplitFloat16(hn::BitCast(Word16Tag(), bytes), to);
  }
  static HWY_INLINE ByteVector Pack(const Vector* from) {
    return hn::BitCast(ByteTag(), hn::Combine(Word16Tag(), ToFloat16(from[1]), ToFloat16(from[0])));
  }
};

// The upper half of an fp32. Even elements and odd ones, so that nothing has to be shuffled.
struct Bfloat16 {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kParts = 2;
  using Vector = FloatVector;

  static HWY_INLINE void Unpack(ByteVector bytes, Vector* to) {
    const Word32Tag w;
    const auto pairs = hn::BitCast(w, bytes);
    to[0] = hn::BitCast(FloatTag(), hn::ShiftLeft<16>(pairs));
    to[1] = hn::BitCast(FloatTag(), hn::And(pairs, hn::Set(w, 0xffff0000U)));
  }
  static HWY_INLINE ByteVector Pack(const Vector* from) {
    const Word32Tag w;
    const auto even = hn::ShiftRight<16>(Round(from[0]));
    const auto odd = hn::And(Round(from[1]), hn::Set(w, 0xffff0000U));
    return hn::BitCast(ByteTag(), hn::Or(even, odd));
  }

 private:
  // To nearest even in the upper 16 bits; the lower ones are not cleared.
  static HWY_INLINE Word32Vector Round(Vector v) {
    const Word32Tag w;
    const auto bits = hn::BitCast(w, WithOneNaN<float>(v));
    const auto is_odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(w, 1U));
    return hn::Add(bits, hn::Add(is_odd, hn::Set(w, 0x7fffU)));
  }
};

// Packs even and odd bytes, each as two halves: the register order of the 8-bit formats.
HWY_INLINE ByteVector PackBytes(Word32Vector even_lower, Word32Vector even_upper,
                                Word32Vector odd_lower, Word32Vector odd_upper) {
  const HalfWord16Tag half;
  const auto lower = hn::TruncateTo(half, hn::Or(even_lower, hn::ShiftLeft<8>(odd_lower)));
  const auto upper = hn::TruncateTo(half, hn::Or(even_upper, hn::ShiftLeft<8>(odd_upper)));
  return hn::BitCast(ByteTag(), hn::Combine(Word16Tag(), upper, lower));
}

// The upper half of an fp16.
struct Float8e5m2 {
  static constexpr size_t kElementBytes = 1;
  static constexpr size_t kParts = 4;
  using Vector = FloatVector;

  static HWY_INLINE void Unpack(ByteVector bytes, Vector* to) {
    const Word16Tag w;
    const auto pairs = hn::BitCast(w, bytes);
    SplitFloat16(hn::ShiftLeft<8>(pairs), to);
    SplitFloat16(hn::And(pairs, hn::Set(w, 0xff00)), to + 2);
  }
  static HWY_INLINE ByteVector Pack(const Vector* from) {
    return PackBytes(Bits(from[0]), Bits(from[1]), Bits(from[2]), Bits(from[3]));
  }

 private:
  static HWY_INLINE Word32Vector Bits(Vector v) { return Encode<5, 2, 0x7c, 0x7e>(v); }
};

// An fp16 of 2^-8 times the value, after a shift by one.
struct Float8e4m3 {
  static constexpr size_t kElementBytes = 1;
  static constexpr size_t kParts = 4;
  using Vector = FloatVector;

  static HWY_INLINE void Unpack(ByteVector bytes, Vector* to) {
    const Word16Tag w;
    const auto pairs = hn::BitCast(w, bytes);
    SplitFloat16(AsFloat16(hn::ShiftLeft<8>(pairs)), to);
    SplitFloat16(AsFloat16(pairs), to + 2);
    for (size_t i = 0; i < kParts; ++i) to[i] = hn::Mul(to[i], hn::Set(FloatTag(), 0x1p8F));
  }
  static HWY_INLINE ByteVector Pack(const Vector* from) {
    return PackBytes(Bits(from[0]), Bits(from[1]), Bits(from[2]), Bits(from[3]));
  }

 private:
  // Converts the upper byte; ignores the lower one.
  static HWY_INLINE Word16Vector AsFloat16(Word16Vector upper) {
    const Word16Tag w;
    const hn::RebindToSigned<Word16Tag> s;
    const auto shifted = hn::BitCast(w, hn::ShiftRight<1>(hn::BitCast(s, upper)));
    const auto magnitude = hn::And(shifted, hn::Set(w, 0x3f80));
    const auto is_nan = hn::Eq(magnitude, hn::Set(w, 0x3f80));
    return hn::IfThenElse(is_nan, hn::Set(w, 0x7e00), hn::And(shifted, hn::Set(w, 0xbf80)));
  }
  static HWY_INLINE Word32Vector Bits(Vector v) { return Encode<4, 3, 0x7e, 0x7f>(v); }
};

}  // namespace railhead::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard of a target
