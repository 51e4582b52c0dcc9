// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of every reduction: any number of inputs into one output, in one pass over memory.
//
// The result has the same bits on every CPU, and for any alignment of the data:
//
// - out[i] = ((in0[i] op in1[i]) op in2[i]) op ..., in the order of the inputs, without fused
//   multiply-adds, in the default rounding mode and with denormals, whatever the thread's mode is.
// - 16- and 8-bit floats are computed in fp32 and rounded once, to nearest even, at the end. So
//   three inputs in one call may differ from two calls with two: an algorithm that passes partial
//   results on, like a ring, passes them in the element's type, and fixes for all ranks alike which
//   inputs meet in which call.
// - What overflows becomes infinity; in e4m3, which has none, the largest value, with the sign (as
//   in NCCL). Integers wrap.
// - Every NaN that is computed is the positive quiet one without payload (e4m3: 0x7f). rhMin and
//   rhMax give NaN when any input is NaN, and take -0 for less than +0.
// - One input alone is copied bit for bit, unless there is something to multiply or divide.
#ifndef RAILHEAD_RUNTIME_REDUCE_REDUCE_H_
#define RAILHEAD_RUNTIME_REDUCE_REDUCE_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "runtime/include/railhead/railhead.h"

namespace railhead::reduce {

// Kind of stores for results. Streaming bypasses the caches: faster for outputs larger than the
// last-level cache that are not read soon, slower otherwise.
enum class Stores { kNormal, kStreaming };

// A factor for all elements of one input: `real` for floats (fp64 for rhFloat64, else rounded to
// fp32), the low bits of `integer` for integers.
struct Scalar {
  double real = 1;
  uint64_t integer = 1;
};

struct Reduction {
  rhDataType_t type = rhFloat32;
  rhRedOp_t op = rhSum;
  // rhAvg is rhSum divided by this, at least 1; integers lose the fraction. It is not the number of
  // inputs: an algorithm with several calls divides in the last one, by the number of ranks.
  int divisor = 1;
  // rhSum and rhAvg: one factor per input, applied first (floats are rounded to fp32 or fp64); or
  // empty.
  absl::Span<const Scalar> scalars;
};

// Returns the bytes of an element; 0 for unknown types.
inline size_t SizeOf(rhDataType_t type) {
  switch (type) {
    case rhInt8:
    case rhUint8:
    case rhFloat8e4m3:
    case rhFloat8e5m2:
      return 1;
    case rhInt16:
    case rhUint16:
    case rhFloat16:
    case rhBfloat16:
      return 2;
    case rhInt32:
    case rhUint32:
    case rhFloat32:
      return 4;
    case rhInt64:
    case rhUint64:
    case rhFloat64:
      return 8;
  }
  return 0;
}

// Returns false for bit operators on floats, and for unknown types and operators.
bool CanReduce(rhDataType_t type, rhRedOp_t op);

// Further outputs with the same content, written in the same pass.
struct Copies {
  absl::Span<std::byte* const> outs;
  Stores stores = Stores::kNormal;
};

// Writes `count` elements to `out` and all `copies`. Needs an input, and CanReduce. Pointers need
// no alignment (streaming needs `out` aligned to its elements, and all others alike; otherwise it
// stores normally). Outputs may equal inputs; otherwise they must not overlap.
void Reduce(const Reduction& reduction, absl::Span<const std::byte* const> inputs, std::byte* out,
            size_t count, Stores stores, const Copies& copies = {});

// Copies between ranges that are equal or do not overlap.
void Copy(const std::byte* in, std::byte* out, size_t bytes, Stores stores);

}  // namespace railhead::reduce

#endif  // RAILHEAD_RUNTIME_REDUCE_REDUCE_H_
