// SPDX-License-Identifier: Apache-2.0
//
// Reductions of elements, as NCCL's operators define them.
#ifndef RAILHEAD_TESTS_NCCL_STOCK_KERNELS_ARITHMETIC_H_
#define RAILHEAD_TESTS_NCCL_STOCK_KERNELS_ARITHMETIC_H_

#include <cstddef>
#include <cstdint>

#include "tests/nccl/stock/kernels/functions.h"

namespace railhead::stock {

struct Reduction {
  Operator op;
  Type type;
  uint64_t argument;  // a factor, a divisor, or which of minimum and maximum
};

// What kPreMultipliedSum does to a rank's own elements first.
void Prepare(const Reduction& reduction, char* elements, size_t count);
// sum = sum op other.
void Reduce(const Reduction& reduction, char* sum, const char* other, size_t count);
// What kDividedSum does to the result.
void Finish(const Reduction& reduction, char* elements, size_t count);

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_KERNELS_ARITHMETIC_H_
