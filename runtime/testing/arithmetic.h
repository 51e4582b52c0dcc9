// SPDX-License-Identifier: Apache-2.0
//
// What runtime/reduce must compute, element by element, without a thought for speed and with none
// of its tricks: floats are decoded and encoded by their definition.
#ifndef RAILHEAD_RUNTIME_TESTING_ARITHMETIC_H_
#define RAILHEAD_RUNTIME_TESTING_ARITHMETIC_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "runtime/reduce/reduce.h"

namespace railhead::testing {

// A float of up to 64 bits: a sign, exponent bits, mantissa bits.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint64_t sign() const { return uint64_t{1} << (exponent_bits + mantissa_bits); }
  uint64_t infinity() const { return ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
  uint64_t nan() const {
    return has_infinity ? infinity() | uint64_t{1} << (mantissa_bits - 1) : sign() - 1;
  }
  // The largest finite value's bits.
  uint64_t largest() const { return has_infinity ? infinity() - 1 : nan() - 1; }
  bool IsNaN(uint64_t bits) const {
    const uint64_t magnitude = bits & (sign() - 1);
    return has_infinity ? magnitude > infinity() : magnitude == nan();
  }
};

inline FloatFormat FormatOf(rhDataType_t type) {
  switch (type) {
    case rhFloat16:
      return {5, 10, true};
    case rhBfloat16:
      return {8, 7, true};
    case rhFloat8e4m3:
      return {4, 3, false};
    case rhFloat8e5m2:
      return {5, 2, true};
    case rhFloat32:
      return {8, 23, true};
    default:
      return {11, 52, true};
  }
}

inline double Decode(const FloatFormat& format, uint64_t bits) {
  const double sign = (bits & format.sign()) != 0 ? -1 : 1;
  const uint64_t magnitude = bits & (format.sign() - 1);
  if (format.IsNaN(bits)) return std::numeric_limits<double>::quiet_NaN();
  if (format.has_infinity && magnitude == format.infinity()) return sign * HUGE_VAL;
  const auto exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const uint64_t unit = uint64_t{1} << format.mantissa_bits;
  const uint64_t mantissa = magnitude % unit + (exponent == 0 ? 0 : unit);
  return sign * std::ldexp(static_cast<double>(mantissa),
                           (exponent == 0 ? 1 : exponent) - format.bias() - format.mantissa_bits);
}

inline uint64_t Encode(const FloatFormat& format, double value) {
  if (std::isnan(value)) return format.nan();
  const uint64_t sign = std::signbit(value) ? format.sign() : 0;
  value = std::fabs(value);
  if (value == 0) return sign;
  const uint64_t overflow = format.has_infinity ? format.infinity() : format.largest();
  if (std::isinf(value)) return sign | overflow;
  int exponent = std::max(std::ilogb(value), 1 - format.bias());
  const double rounded = std::nearbyint(std::ldexp(value, format.mantissa_bits - exponent));
  const double result = std::ldexp(rounded, exponent - format.mantissa_bits);
  if (result > Decode(format, format.largest())) return sign | overflow;
  const auto unit = static_cast<double>(uint64_t{1} << format.mantissa_bits);
  if (rounded < unit) return sign | static_cast<uint64_t>(rounded);
  exponent = std::ilogb(result);
  const double fraction = std::ldexp(result, format.mantissa_bits - exponent) - unit;
  return sign | static_cast<uint64_t>(exponent + format.bias()) << format.mantissa_bits |
         static_cast<uint64_t>(fraction);
}

// Computes in T, float or double, which rounds every step.
template <class T>
uint64_t ReduceFloats(const FloatFormat& format, const reduce::Reduction& reduction,
                      const std::vector<uint64_t>& inputs) {
  T result = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    T next = static_cast<T>(Decode(format, inputs[i]));
    if (!reduction.scalars.empty()) next *= static_cast<T>(reduction.scalars[i].real);
    if (i == 0) {
      result = next;
    } else if (reduction.op == rhProd) {
      result *= next;
    } else if (reduction.op == rhSum || reduction.op == rhAvg) {
      result += next;
    } else if (std::isnan(result) || std::isnan(next)) {
      result = std::numeric_limits<T>::quiet_NaN();
    } else {
      const bool less = next < result || (next == result && std::signbit(next));
      if (less == (reduction.op == rhMin)) result = next;
    }
  }
  if (reduction.op == rhAvg) result /= static_cast<T>(reduction.divisor);
  return Encode(format, result);
}

template <class T>
uint64_t ReduceIntegers(const reduce::Reduction& reduction, const std::vector<uint64_t>& inputs) {
  T result = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto next = static_cast<T>(inputs[i]);
    if (!reduction.scalars.empty()) {
      next = static_cast<T>(inputs[i] * reduction.scalars[i].integer);
    }
    const auto a = static_cast<uint64_t>(result);
    const auto b = static_cast<uint64_t>(next);
    if (i == 0) {
      result = next;
    } else if (reduction.op == rhSum || reduction.op == rhAvg) {
      result = static_cast<T>(a + b);
    } else if (reduction.op == rhProd) {
      result = static_cast<T>(a * b);
    } else if (reduction.op == rhMax) {
      result = result < next ? next : result;
    } else if (reduction.op == rhMin) {
      result = next < result ? next : result;
    } else {
      result = static_cast<T>(reduction.op == rhBand  ? a & b
                              : reduction.op == rhBor ? a | b
                                                      : a ^ b);
    }
  }
  if (reduction.op != rhAvg) return static_cast<uint64_t>(result);
  if (std::is_signed_v<T>)
    return static_cast<uint64_t>(static_cast<int64_t>(result) / reduction.divisor);
  return static_cast<uint64_t>(result) / static_cast<uint64_t>(reduction.divisor);
}

// The bits of one element of the result, from those of the inputs, all in the low bits.
inline uint64_t ReduceElement(const reduce::Reduction& reduction,
                              const std::vector<uint64_t>& inputs) {
  const bool divides = reduction.op == rhAvg && reduction.divisor != 1;
  if (inputs.size() == 1 && !divides && reduction.scalars.empty()) return inputs[0];
  switch (reduction.type) {
    case rhInt8:
      return ReduceIntegers<int8_t>(reduction, inputs);
    case rhUint8:
      return ReduceIntegers<uint8_t>(reduction, inputs);
    case rhInt16:
      return ReduceIntegers<int16_t>(reduction, inputs);
    case rhUint16:
      return ReduceIntegers<uint16_t>(reduction, inputs);
    case rhInt32:
      return ReduceIntegers<int32_t>(reduction, inputs);
    case rhUint32:
      return ReduceIntegers<uint32_t>(reduction, inputs);
    case rhInt64:
      return ReduceIntegers<int64_t>(reduction, inputs);
    case rhUint64:
      return ReduceIntegers<uint64_t>(reduction, inputs);
    case rhFloat64:
      return ReduceFloats<double>(FormatOf(reduction.type), reduction, inputs);
    default:
      return ReduceFloats<float>(FormatOf(reduction.type), reduction, inputs);
  }
}

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_ARITHMETIC_H_
