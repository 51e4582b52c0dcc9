// SPDX-License-Identifier: Apache-2.0
#include "runtime/reduce/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "runtime/reduce/float_environment.h"
#include "runtime/reduce/kernels.h"

namespace railhead::reduce {
namespace {

bool IsFloat(rhDataType_t type) { return type >= rhFloat16 && type <= rhFloat8e5m2; }

// Divides and keeps the type; T's own division would not hold the divisor in 8 or 16 bits.
template <class T>
void Divide(std::byte* data, size_t bytes, int divisor) {
  using Narrow = std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>;
  using Wide = std::conditional_t<sizeof(T) == 8, T, Narrow>;
  for (size_t at = 0; at < bytes; at += sizeof(T)) {
    T value;
    std::memcpy(&value, data + at, sizeof value);
    value = static_cast<T>(static_cast<Wide>(value) / static_cast<Wide>(divisor));
    std::memcpy(data + at, &value, sizeof value);
  }
}

void Divide(rhDataType_t type, std::byte* data, size_t bytes, int divisor) {
  switch (type) {
    case rhInt8:
      return Divide<int8_t>(data, bytes, divisor);
    case rhUint8:
      return Divide<uint8_t>(data, bytes, divisor);
    case rhInt16:
      return Divide<int16_t>(data, bytes, divisor);
    case rhUint16:
      return Divide<uint16_t>(data, bytes, divisor);
    case rhInt32:
      return Divide<int32_t>(data, bytes, divisor);
    case rhUint32:
      return Divide<uint32_t>(data, bytes, divisor);
    case rhInt64:
      return Divide<int64_t>(data, bytes, divisor);
    default:
      return Divide<uint64_t>(data, bytes, divisor);
  }
}

// CPUs have no vector division of integers, so it gets a separate loop, over blocks that stay in
// the first cache.
void AverageIntegers(const Call& call) {
  alignas(64) std::array<std::byte, 4096> block;
  for (size_t at = 0; at < call.bytes; at += block.size()) {
    Call part = call;
    part.op = rhSum;
    part.skip = at;
    part.out = block.data();
    part.copies = {};
    part.bytes = std::min(call.bytes - at, block.size());
    part.streaming = false;
    ReduceIntegers(part);
    Divide(call.type, block.data(), part.bytes, call.divisor);
    Copy(block.data(), call.out + at, part.bytes,
         call.streaming ? Stores::kStreaming : Stores::kNormal);
    for (std::byte* out : call.copies.outs) {
      Copy(block.data(), out + at, part.bytes, call.copies.stores);
    }
  }
}

}  // namespace

bool CanReduce(rhDataType_t type, rhRedOp_t op) {
  return SizeOf(type) != 0 && op >= rhSum && op <= (IsFloat(type) ? rhAvg : rhBxor);
}

void Reduce(const Reduction& reduction, absl::Span<const std::byte* const> inputs, std::byte* out,
            size_t count, Stores stores, const Copies& copies) {
  const bool divides = reduction.op == rhAvg && reduction.divisor != 1;
  const bool multiplies = !reduction.scalars.empty();
  const size_t bytes = count * SizeOf(reduction.type);
  const bool bits_alone = inputs.size() == 1 && !divides && !multiplies;
  if (bits_alone && copies.outs.empty()) return Copy(inputs[0], out, bytes, stores);
  Call call{};
  call.type = bits_alone ? rhUint8 : reduction.type;
  call.op = reduction.op == rhAvg && !divides ? rhSum : reduction.op;
  if (bits_alone) call.op = rhBor;
  call.divisor = reduction.divisor;
  call.scalars = multiplies ? reduction.scalars.data() : nullptr;
  call.inputs = inputs.data();
  call.input_count = inputs.size();
  call.out = out;
  call.copies = copies;
  call.bytes = bytes;
  call.streaming = stores == Stores::kStreaming;
  if (!IsFloat(call.type)) return call.op == rhAvg ? AverageIntegers(call) : ReduceIntegers(call);
  const DefaultFloatEnvironment environment;
  if (SizeOf(call.type) < sizeof(float)) return ReduceSmallFloats(call);
  ReduceFloats(call);
}

void Copy(const std::byte* in, std::byte* out, size_t bytes, Stores stores) {
  if (bytes == 0 || in == out) return;
  if (stores == Stores::kNormal) {
    std::memcpy(out, in, bytes);
    return;
  }
  Call call{};
  call.type = rhUint8;
  call.op = rhBor;
  call.inputs = &in;
  call.input_count = 1;
  call.out = out;
  call.bytes = bytes;
  call.streaming = true;
  ReduceIntegers(call);
}

}  // namespace railhead::reduce
