// SPDX-License-Identifier: Apache-2.0
#include "runtime/perf/types.h"

#include <algorithm>
#include <array>
#include <bit>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace railhead::perf {
namespace {

constexpr std::array<Type, 14> kTypes = {{
    {rhInt8, "int8", 1, true, 0, 0},
    {rhUint8, "uint8", 1, false, 0, 0},
    {rhInt16, "int16", 2, true, 0, 0},
    {rhUint16, "uint16", 2, false, 0, 0},
    {rhInt32, "int32", 4, true, 0, 0},
    {rhUint32, "uint32", 4, false, 0, 0},
    {rhInt64, "int64", 8, true, 0, 0},
    {rhUint64, "uint64", 8, false, 0, 0},
    {rhFloat16, "half", 2, true, 5, 10},
    {rhBfloat16, "bfloat16", 2, true, 8, 7},
    {rhFloat32, "float", 4, true, 8, 23},
    {rhFloat64, "double", 8, true, 11, 52},
    {rhFloat8e4m3, "f8e4m3", 1, true, 4, 3},
    {rhFloat8e5m2, "f8e5m2", 1, true, 5, 2},
}};

constexpr std::array<Operator, 8> kOperators = {{
    {rhSum, "sum", false},
    {rhProd, "prod", false},
    {rhMin, "min", false},
    {rhMax, "max", false},
    {rhAvg, "avg", false},
    {rhBand, "band", true},
    {rhBor, "bor", true},
    {rhBxor, "bxor", true},
}};

constexpr int kMostExactBits = 53;  // those of a double; integers of 64 bits need no more

}  // namespace

int64_t Type::exact() const {
  if (!is_integer()) return int64_t{1} << (mantissa_bits + 1);
  const int bits = static_cast<int>(8 * bytes) - (is_signed ? 1 : 0);
  return (int64_t{1} << std::min(bits, kMostExactBits)) - 1;
}

absl::Span<const Type> Types() { return kTypes; }
absl::Span<const Operator> Operators() { return kOperators; }

absl::StatusOr<std::vector<Kind>> Kinds(bool reduces, absl::string_view type,
                                        absl::string_view op) {
  bool has_type = false;
  bool has_op = !reduces;
  std::vector<Kind> kinds;
  for (const Type& each_type : kTypes) {
    if (type != kAll && type != each_type.name) continue;
    has_type = true;
    if (!reduces) kinds.push_back({&each_type, nullptr});
    for (const Operator& each_op : kOperators) {
      if (!reduces || (op != kAll && op != each_op.name)) continue;
      has_op = true;
      if (each_type.is_integer() || !each_op.on_bits) kinds.push_back({&each_type, &each_op});
    }
  }
  if (!has_type) return absl::InvalidArgumentError(absl::StrCat("unknown type '", type, "'"));
  if (!has_op) return absl::InvalidArgumentError(absl::StrCat("unknown operator '", op, "'"));
  if (kinds.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(op, " requires an integer type, but ", type, " is a float"));
  }
  return kinds;
}

uint64_t Encode(const Type& type, int64_t number) {
  const auto plain = static_cast<uint64_t>(number);
  if (type.is_integer() || number == 0) return plain;
  const uint64_t magnitude = number < 0 ? 0 - plain : plain;
  const auto exponent = static_cast<int>(std::bit_width(magnitude)) - 1;
  // With the leading bit, which is not stored, just above the mantissa.
  const uint64_t mantissa = exponent <= type.mantissa_bits
                                ? magnitude << (type.mantissa_bits - exponent)
                                : magnitude >> (exponent - type.mantissa_bits);
  const int bias = (1 << (type.exponent_bits - 1)) - 1;
  // The leading bit counts as one more exponent.
  const uint64_t exponents = static_cast<uint64_t>(exponent + bias - 1) << type.mantissa_bits;
  const uint64_t sign = number < 0 ? uint64_t{1} << (type.exponent_bits + type.mantissa_bits) : 0;
  return sign | (exponents + mantissa);
}

}  // namespace railhead::perf
