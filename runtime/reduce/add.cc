// SPDX-License-Identifier: Apache-2.0
#include "runtime/reduce/add.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace railhead::reduce {

void AddFloat32(const std::byte* a, const std::byte* b, std::byte* out, size_t bytes) {
  // Blocks through local arrays: the copies are unaligned vector moves, the sum a vector loop.
  constexpr size_t kBlock = 64;
  std::array<float, kBlock> x;
  std::array<float, kBlock> y;
  for (size_t at = 0; at < bytes; at += sizeof x) {
    const size_t size = std::min(bytes - at, sizeof x);
    std::memcpy(x.data(), a + at, size);
    std::memcpy(y.data(), b + at, size);
    for (size_t i = 0; i < size / sizeof(float); ++i) x[i] += y[i];
    std::memcpy(out + at, x.data(), size);
  }
}

}  // namespace railhead::reduce
