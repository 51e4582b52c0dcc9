// SPDX-License-Identifier: Apache-2.0
#include "runtime/reduce/scalar.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace railhead::reduce {
namespace {

// A float of one sign bit, then `exponent` bits, then `fraction` bits.
struct Format {
  int exponent;
  int fraction;
  bool has_infinity;  // e4m3 has none: its largest exponent has values, but for one NaN
};

double Decode(const Format& format, uint32_t bits) {
  const uint32_t fractions = 1U << static_cast<unsigned>(format.fraction);
  const uint32_t exponents = 1U << static_cast<unsigned>(format.exponent);
  const uint32_t fraction = bits % fractions;
  const uint32_t exponent = bits / fractions % exponents;
  const double sign = (bits / fractions / exponents) % 2 == 0 ? 1 : -1;
  const int bias = static_cast<int>(exponents / 2) - 1;
  if (exponent == exponents - 1) {
    if (format.has_infinity ? fraction != 0 : fraction == fractions - 1) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    if (format.has_infinity) return sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - format.fraction);
  return sign *
         std::ldexp(fractions + fraction, static_cast<int>(exponent) - bias - format.fraction);
}

}  // namespace

Scalar ReadScalar(rhDataType_t type, const void* element) {
  Scalar scalar;
  uint64_t bits = 0;
  std::memcpy(&bits, element, SizeOf(type));  // the CPUs that we know are little-endian
  const auto small = static_cast<uint32_t>(bits);
  switch (type) {
    case rhFloat64:
      std::memcpy(&scalar.real, element, sizeof scalar.real);
      break;
    case rhFloat32:
      scalar.real = Decode({8, 23, true}, small);
      break;
    case rhFloat16:
      scalar.real = Decode({5, 10, true}, small);
      break;
    case rhBfloat16:
      scalar.real = Decode({8, 7, true}, small);
      break;
    case rhFloat8e4m3:
      scalar.real = Decode({4, 3, false}, small);
      break;
    case rhFloat8e5m2:
      scalar.real = Decode({5, 2, true}, small);
      break;
    default:
      scalar.integer = bits;
  }
  return scalar;
}

}  // namespace railhead::reduce
