// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_REDUCE_ADD_H_
#define RAILHEAD_RUNTIME_REDUCE_ADD_H_

#include <cstddef>

namespace railhead::reduce {

// out[i] = a[i] + b[i] over float32 values in `bytes` bytes (a multiple of 4). No pointer needs to
// be aligned. `out` may equal `a` or `b`; otherwise they do not overlap.
void AddFloat32(const std::byte* a, const std::byte* b, std::byte* out, size_t bytes);

}  // namespace railhead::reduce

#endif  // RAILHEAD_RUNTIME_REDUCE_ADD_H_
