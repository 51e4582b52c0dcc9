// SPDX-License-Identifier: Apache-2.0
//
// Factors of the program's own operators (rhRedOpCreatePreMulSum).
#ifndef RAILHEAD_RUNTIME_REDUCE_SCALAR_H_
#define RAILHEAD_RUNTIME_REDUCE_SCALAR_H_

#include "runtime/reduce/reduce.h"

namespace railhead::reduce {

// The factor that one element of `type` stands for. `element` needs no alignment.
Scalar ReadScalar(rhDataType_t type, const void* element);

}  // namespace railhead::reduce

#endif  // RAILHEAD_RUNTIME_REDUCE_SCALAR_H_
