// SPDX-License-Identifier: Apache-2.0
#include "runtime/reduce/plain_loops.h"

#include <cstdint>

namespace railhead::reduce {
namespace {

template <class T>
bool Sum(absl::Span<const std::byte* const> inputs, std::byte* to, size_t count) {
  const auto input = [&](size_t k) { return reinterpret_cast<const T*>(inputs[k]); };
  const T* const a = input(0);
  const T* const b = input(1);
  T* const out = reinterpret_cast<T*>(to);
  if (inputs.size() == 2) {
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<T>(a[i] + b[i]);
  } else if (inputs.size() == 3) {
    const T* const c = input(2);
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<T>(a[i] + b[i] + c[i]);
  } else {
    const T* const c = input(2);
    const T* const d = input(3);
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<T>(a[i] + b[i] + c[i] + d[i]);
  }
  return true;
}

}  // namespace

bool PlainSum(rhDataType_t type, absl::Span<const std::byte* const> inputs, std::byte* out,
              size_t count) {
  switch (type) {
    case rhInt8:
    case rhUint8:
      return Sum<uint8_t>(inputs, out, count);
    case rhInt16:
    case rhUint16:
      return Sum<uint16_t>(inputs, out, count);
    case rhInt32:
    case rhUint32:
      return Sum<uint32_t>(inputs, out, count);
    case rhInt64:
    case rhUint64:
      return Sum<uint64_t>(inputs, out, count);
    case rhFloat32:
      return Sum<float>(inputs, out, count);
    case rhFloat64:
      return Sum<double>(inputs, out, count);
    default:
      return false;
  }
}

}  // namespace railhead::reduce
