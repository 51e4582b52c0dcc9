// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/kernels/arithmetic.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "tests/nccl/stock/cuda/api.h"

namespace railhead::stock {
namespace {

struct Bf16 {
  uint16_t bits;
};

template <class T>
auto Widened(T value) {
  if constexpr (std::is_same_v<T, Bf16>) {
    const uint32_t bits = uint32_t{value.bits} << 16U;
    float wide = 0;
    std::memcpy(&wide, &bits, sizeof wide);
    return wide;
  } else if constexpr (std::is_same_v<T, _Float16>) {
    return static_cast<float>(value);
  } else {
    return value;
  }
}

template <class T, class Wide>
T Rounded(Wide wide) {
  if constexpr (std::is_same_v<T, Bf16>) {
    uint32_t bits = 0;
    std::memcpy(&bits, &wide, sizeof bits);
    return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16U) & 1U)) >> 16U)};
  } else {
    return static_cast<T>(wide);
  }
}

// The argument's first bytes are the number.
template <class T>
T Argument(uint64_t argument) {
  T number;
  std::memcpy(&number, &argument, sizeof number);
  return number;
}

// Integers are all unsigned here: NCCL uses one function for both.
template <class T>
T Combined(const Reduction& reduction, T a, T b) {
  if (reduction.op == kMinMax) {
    if constexpr (std::is_integral_v<T>) {
      // The bits of the argument, flipped in both, make the minimum of unsigned integers the
      // answer.
      const auto flipped = static_cast<T>(reduction.argument);
      return static_cast<T>(a ^ flipped) < static_cast<T>(b ^ flipped) ? a : b;
    } else {
      const auto x = Widened(a), y = Widened(b);
      return Rounded<T>((reduction.argument & 1U) == 0 ? std::min(x, y) : std::max(x, y));
    }
  }
  if (reduction.op == kProduct) return Rounded<T>(Widened(a) * Widened(b));
  return Rounded<T>(Widened(a) + Widened(b));
}

template <class T>
T Divided(uint64_t argument, T sum) {
  const auto divisor = static_cast<T>(argument >> 1U);
  using Signed = std::make_signed_t<T>;
  return (argument & 1U) != 0
             ? static_cast<T>(static_cast<Signed>(sum) / static_cast<Signed>(divisor))
             : static_cast<T>(sum / divisor);
}

// Calls body(T()) with the type of elements.
template <class Body>
void WithType(Type type, Body body) {
  switch (type) {
    case kI8:
    case kU8:
      return body(uint8_t());
    case kI32:
    case kU32:
      return body(uint32_t());
    case kI64:
    case kU64:
      return body(uint64_t());
    case kF16:
      return body(_Float16());
    case kF32:
      return body(float());
    case kF64:
      return body(double());
    case kBf16:
      return body(Bf16());
    default:
      GiveUp("elements of type %d are not emulated", type);
  }
}

}  // namespace

void Prepare(const Reduction& reduction, char* elements, size_t count) {
  if (reduction.op != kPreMultipliedSum) return;
  WithType(reduction.type, [&](auto zero) {
    using T = decltype(zero);
    auto* const values = reinterpret_cast<T*>(elements);
    const auto factor = Widened(Argument<T>(reduction.argument));
    for (size_t i = 0; i < count; ++i) values[i] = Rounded<T>(Widened(values[i]) * factor);
  });
}

void Reduce(const Reduction& reduction, char* sum, const char* other, size_t count) {
  WithType(reduction.type, [&](auto zero) {
    using T = decltype(zero);
    auto* const values = reinterpret_cast<T*>(sum);
    const auto* const others = reinterpret_cast<const T*>(other);
    for (size_t i = 0; i < count; ++i) values[i] = Combined(reduction, values[i], others[i]);
  });
}

void Finish(const Reduction& reduction, char* elements, size_t count) {
  if (reduction.op != kDividedSum) return;
  WithType(reduction.type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      auto* const values = reinterpret_cast<T*>(elements);
      for (size_t i = 0; i < count; ++i) values[i] = Divided(reduction.argument, values[i]);
    }
  });
}

}  // namespace railhead::stock
