// SPDX-License-Identifier: Apache-2.0
//
// Plain loops, with which the benchmark compares the library's vectorized reductions.
#ifndef RAILHEAD_RUNTIME_REDUCE_PLAIN_LOOPS_H_
#define RAILHEAD_RUNTIME_REDUCE_PLAIN_LOOPS_H_

#include <cstddef>

#include "absl/types/span.h"
#include "runtime/include/railhead/railhead.h"

namespace railhead::reduce {

// A plain sum for the compiler to vectorize. False for types that the language cannot add.
bool PlainSum(rhDataType_t type, absl::Span<const std::byte* const> inputs, std::byte* out,
              size_t count);

}  // namespace railhead::reduce

#endif  // RAILHEAD_RUNTIME_REDUCE_PLAIN_LOOPS_H_
