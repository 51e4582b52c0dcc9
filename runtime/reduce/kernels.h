// SPDX-License-Identifier: Apache-2.0
//
// Interface between reduce.cc and the vector code, which is compiled once per kind of CPU.
#ifndef RAILHEAD_RUNTIME_REDUCE_KERNELS_H_
#define RAILHEAD_RUNTIME_REDUCE_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "runtime/reduce/reduce.h"

namespace railhead::reduce {

struct Call {
  rhDataType_t type;
  rhRedOp_t op;
  int divisor;            // rhAvg
  const Scalar* scalars;  // one per input, or null
  const std::byte* const* inputs;
  size_t input_count;
  size_t skip;  // bytes to skip in each input
  std::byte* out;
  size_t bytes;
  bool streaming;  // write `out` past the caches
  Copies copies;   // further outputs
};

// CPU kinds with compiled code, as Highway's bits.
int64_t CompiledTargets();

// Each uses the code for this CPU. Integers are not averaged here.
void ReduceIntegers(const Call& call);
void ReduceFloats(const Call& call);       // rhFloat32, rhFloat64
void ReduceSmallFloats(const Call& call);  // those of 16 and 8 bits

}  // namespace railhead::reduce

#endif  // RAILHEAD_RUNTIME_REDUCE_KERNELS_H_
